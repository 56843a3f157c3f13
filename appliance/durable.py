"""Files that survive a power cut: whole or not there, and on the disk when the call returns."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def sync(path: Path) -> None:
    """Wait until the disk has the file, or the folder's entries. OSError when it cannot."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file, 0600, that becomes `path` when the block succeeds and is removed when it fails."""
    aside = path.with_name(f".{path.name}.{os.getpid()}{threading.get_ident()}")
    aside.unlink(missing_ok=True)  # left by a power cut
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def atomic_write(path: Path, content: bytes) -> None:
    """Replace the file with `content`: after a power cut it is the old one or the new one."""
    with atomic_file(path) as file:
        file.write(content)
