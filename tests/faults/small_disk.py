"""A volume of a few dozen megabytes that only one process sees, and that can be filled and emptied.

It lives in a mount namespace of the process and ends with it: nothing is left to unmount.
"""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

MEGABYTES = 64  # room for a whole write-ahead log, whose 16 MB are used before they are folded
_MOUNT = 'mount -t tmpfs -o size={size}m tmpfs "$0" && cp -a "$1/." "$0" && shift && exec "$@"'


@cache
def unshare():
    """The command that gives a process mounts of its own, or None where nobody may have them."""
    for command in (["unshare", "-rm"], ["unshare", "-m"]):
        if shutil.which("unshare") is None:
            break
        tried = [*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        if subprocess.run(tried, capture_output=True, check=False).returncode == 0:
            return command
    return None


def on_small_disk(folder, content, megabytes=MEGABYTES):
    """A command prefix: what follows sees `folder` as a small volume with a copy of `content`."""
    return (*unshare(), "sh", "-c", _MOUNT.format(size=megabytes), str(folder), str(content))


class Filler:
    """Takes the room that is left on the volume of a running process."""

    def __init__(self, pid, folder):
        self._file = Path(f"/proc/{pid}/root{folder}/filler")

    def fill(self):
        """Leave no room at all."""
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            for size in (1 << 20, 4096, 1):
                fill_by(handle, size)
        finally:
            os.close(handle)

    def free(self):
        """Give the room back."""
        self._file.unlink()


def fill_by(handle, size):
    try:
        while os.write(handle, bytes(size)):
            pass
    except OSError:
        return
