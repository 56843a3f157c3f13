"""Making what was written to a file, or put into a folder, survive a power cut."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until the disk has the file, or the folder's entries. OSError when it cannot."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
