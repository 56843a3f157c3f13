"""SFTP for the boxes: each box has a folder with a quota for its backups, and can read releases.

A box logs in with its enrolled key. Apart from releases, it can access only the files in its own
folder, which has no subfolders and no links. The box encrypts its backups.
"""

import asyncio
import os
import posixpath
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, NoReturn, cast

import asyncssh

from appliance.core.files import make_folder, sync
from web.relay.releases import find_release
from web.relay.server import Boxes

_NAME = re.compile(rb"[A-Za-z0-9._-]{1,200}")
_RELEASE = re.compile(rb"/?release/([a-z0-9_]{1,32})")
_REPORT_BYTES = 64 * 1024  # the smallest quota, for the update reports of a box without backups
_FILES_MAX = 1000  # maximum number of files per box; a box keeps about 60 backups
_OPEN_MAX = 16  # maximum number of open files per box
_READ_MAX = 4 << 20  # maximum number of bytes per read, which the library announces to clients
_FREE_LEAST = 256 << 20  # free bytes that boxes must leave on the disk


def used_bytes(folder: Path) -> int:
    """Return the size in bytes of all files in a box's folder."""
    return sum(_sizes(folder).values())


def _sizes(folder: Path) -> dict[str, int]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.stat(follow_symlinks=False).st_size for entry in entries}
    except FileNotFoundError:  # there is no folder yet
        return {}


class BoxFiles(asyncssh.SFTPServer):
    """One SFTP session of a box. It rejects all requests after the box is revoked.

    Each method raises SFTPError if a request is not allowed, as the library expects. The library
    handles one request of a session at a time, so the waits in `read` and `write` limit the box's
    rate.
    """

    def __init__(self, boxes: Boxes, channel: "asyncssh.SSHServerChannel[bytes]") -> None:
        super().__init__(channel)
        self._boxes = boxes
        # A box that is just joining has no name yet, so its requests are refused.
        self._name, self._key = channel.get_extra_info("box", ("", ""))
        self._folder = boxes.enrolments.backups / self._name
        self._traffic = boxes.storage[self._name]
        # The rate for files. Forwarded connections have a separate limit.
        self._rate = max(1, boxes.limits.bytes_per_second // 2)

    def map_path(self, path: bytes) -> bytes:
        """Return the path of the box's folder or of a file in it. Every operation calls this."""
        self._check()
        name = posixpath.normpath(posixpath.join(b"/", path)).lstrip(b"/")
        if name and not _NAME.fullmatch(name):
            _refuse("this name is not allowed")
        make_folder(self._folder)
        return os.fsencode(self._folder / os.fsdecode(name))

    def _check(self) -> None:
        if not self._name or self._boxes.find_by_key(self._key) != self._name:
            _refuse("the box is not enrolled")

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        """Open a file. Refuses appending, because `write` must know the offset for the quota."""
        del attrs  # attributes such as the file mode are ignored
        if machine := _RELEASE.fullmatch(path):
            return self._open_release(machine[1].decode(), pflags)
        if pflags & asyncssh.FXF_APPEND:
            _refuse("files cannot be appended to")
        place = Path(os.fsdecode(self.map_path(path)))
        if self._traffic.open >= _OPEN_MAX:
            _refuse("too many open files")
        if not place.exists() and len(_sizes(self._folder)) >= _FILES_MAX:
            _refuse("too many files")
        file = super().open(path, pflags, asyncssh.SFTPAttrs(permissions=0o600))
        self._traffic.open += 1
        return file

    def _open_release(self, machine: str, pflags: int) -> object:
        """Open the release that is staged for this box, for reading only."""
        self._check()
        if pflags & ~asyncssh.FXF_READ:
            _refuse("a release can only be read")
        if self._traffic.open >= _OPEN_MAX:
            _refuse("too many open files")
        path = find_release(self._boxes.enrolments, self._name, machine)
        if path is None:
            raise asyncssh.SFTPNoSuchFile("no release is staged for this box")
        file = path.open("rb", buffering=0)
        self._traffic.open += 1
        return file

    def close(self, file_obj: object) -> None:
        """Close a file. The library calls this at the end of the session too."""
        self._traffic.open -= 1
        cast("IO[bytes]", file_obj).close()

    async def read(self, file_obj: object, offset: int, size: int) -> bytes:
        """Read at most 4 MiB, within the box's rate limit."""
        self._check()
        data = cast("bytes", super().read(file_obj, offset, min(size, _READ_MAX)))
        self._traffic.bytes_out += len(data)
        await self._traffic.spend(len(data), self._rate)
        return data

    async def write(self, file_obj: object, offset: int, data: bytes) -> int:
        """Write within the box's rate limit. Refuses if the box's quota or the disk is full."""
        await self._traffic.spend(len(data), self._rate)
        self._check()
        handle = cast("IO[bytes]", file_obj).fileno()
        growth = offset + len(data) - os.fstat(handle).st_size
        if growth > 0:
            quota = max(self._boxes.limits.backup_bytes, _REPORT_BYTES)
            if used_bytes(self._folder) + growth > quota:
                _refuse(f"the {quota >> 20} MB for backups of this box are used up")
            disk = os.fstatvfs(handle)
            if disk.f_bavail * disk.f_frsize - growth < _FREE_LEAST:
                _refuse("the disk of the relay is full")
        self._traffic.bytes_in += len(data)
        return cast("int", super().write(file_obj, offset, data))

    async def rename(self, oldpath: bytes, newpath: bytes) -> None:
        """Sync a file's content to the disk, then rename the file."""
        old = Path(os.fsdecode(self.map_path(oldpath)))
        await asyncio.to_thread(sync, old)
        super().rename(oldpath, newpath)
        await asyncio.to_thread(sync, self._folder)

    async def posix_rename(self, oldpath: bytes, newpath: bytes) -> None:
        """Like `rename`, but overwrite a file that already has the new name."""
        old, new = (Path(os.fsdecode(self.map_path(path))) for path in (oldpath, newpath))
        await asyncio.to_thread(sync, old)
        old.replace(new)
        await asyncio.to_thread(sync, self._folder)

    async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
        """Yield the files in the folder. Does not keep the folder open between two files."""
        self.map_path(path)
        for name, size in _sizes(self._folder).items():
            yield asyncssh.SFTPName(os.fsencode(name), attrs=asyncssh.SFTPAttrs(size=size))

    def realpath(self, path: bytes) -> bytes:
        """Return the path as the box sees it, with the box's own folder as the root."""
        place = Path(os.fsdecode(self.map_path(path)))
        return b"/" + os.fsencode("" if place == self._folder else place.name)

    def mkdir(self, path: bytes, attrs: asyncssh.SFTPAttrs) -> NoReturn:
        """Refuse to create a folder. After this error, clients check whether it already exists."""
        del path, attrs
        raise asyncssh.SFTPFailure("folders cannot be created here")


def _refuse_always(*_arguments: object) -> NoReturn:
    _refuse("this is not allowed")


# Changed attributes could enlarge a file, and links could lead out of the folder. Boxes do not need
# the other operations.
for _operation in (
    "open56", "setstat", "lsetstat", "fsetstat", "rmdir", "symlink", "link", "readlink",
    "lock", "unlock", "statvfs", "fstatvfs", "fsync",
):  # fmt: skip
    setattr(BoxFiles, _operation, _refuse_always)


def _refuse(reason: str) -> NoReturn:
    raise asyncssh.SFTPPermissionDenied(reason)
