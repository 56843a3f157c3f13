"""The ballast: room that is given back when the disk is full, so that the door goes on.

Only check-ins may use it. While the disk is full nothing else is taken; when there is room
again, the ballast is made anew first.
"""

import errno
import logging
import os
import tempfile
from pathlib import Path

from appliance.durable import atomic_file

log = logging.getLogger(__name__)

NAME = "ballast"
MEBIBYTES = 64
_MIB = 1 << 20
_LEAST = _MIB
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_SPARE = 4  # a volume must have so many times the ballast free before it is made


class Ballast:
    """A file of nothing. Made lazily, and smaller on a small volume."""

    def __init__(self, folder: Path, size: int = MEBIBYTES * _MIB) -> None:
        self._path = folder / NAME
        self._size = size
        self._released = 0

    @property
    def is_there(self) -> bool:
        """Whether there is a reserve."""
        return self._path.exists()

    def free(self) -> int:
        """What is left for the box on its volume, in bytes."""
        found = os.statvfs(self._path.parent)
        return found.f_bavail * found.f_frsize

    def make(self) -> bool:
        """Take the room, if there is plenty of it; whether there is a reserve now."""
        if self.is_there:
            return True
        size = min(self._size, self.free() // _SPARE)
        if size < _LEAST:
            return False
        try:
            with atomic_file(self._path) as file:
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in {*_NO_ROOM, errno.EOPNOTSUPP}:
                log.warning("no reserve for a full disk: %s", error.strerror)
            return False
        return True

    @property
    def was_released(self) -> bool:
        """Whether its room was given away, and not taken again yet."""
        return self._released > 0 and not self.is_there

    def release_if_full(self) -> None:
        """Give the room back before a start that would find none: a database needs some to open."""
        if self.free() <= _LEAST:
            self.release()

    def has_room_for_all(self) -> bool:
        """Whether there is room again beyond what was released.

        What a quota leaves the box is known to nobody before it is taken.
        """
        needed = self._released + _LEAST
        return self.free() > needed and self._can_take(needed)

    def _can_take(self, size: int) -> bool:
        try:
            with tempfile.TemporaryFile(dir=self._path.parent) as file:
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            return error.errno not in _NO_ROOM
        return True

    def release(self) -> bool:
        """Give the room back; whether there was any."""
        try:
            self._released = self._path.stat().st_size
            self._path.unlink()
        except OSError:
            return False
        log.error("the disk is full: check-ins go on from the reserve, nothing else is taken")
        return True
