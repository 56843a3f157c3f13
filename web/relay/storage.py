"""What the relay stores for the boxes: their backups, over SFTP, and staged releases.

A box logs in with its enrolled key. Apart from releases, it can access only the files in its own
folder, which has a quota and contains no subfolders or links. The box encrypts its backups.

The relay's operator offers a release to a share of the boxes that allow it. The relay's data
directory contains at most one release for each machine type, such as x86_64. Each box reports the
result of its latest update. If the staged release fails on one box, no other box receives it until
the operator stages it again.
"""

import asyncio
import hashlib
import os
import posixpath
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, NoReturn, cast

import asyncssh
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from appliance.core.files import atomic_file, make_folder, read_json, sync, write_json
from appliance.release import (
    OUTCOMES,
    Manifest,
    UpdateRecord,
    copy_program,
    read_manifest,
    read_update_record,
)
from web.relay.enrolment import Enrolments
from web.relay.server import Boxes

_REPORT_BYTES = 64 * 1024  # maximum size of an update report, and minimum quota of a box


class Stage(msgspec.Struct, frozen=True):
    """An offered release: its version, and the percentage of the boxes that may install it."""

    version: str
    share: int
    ignored: list[str] = []  # boxes whose update failed before the release was staged; not counted


def stage_release(
    enrolments: Enrolments, release: IO[bytes], key: Ed25519PublicKey, share: int
) -> Manifest:
    """Offer the open file `release` to `share` percent of the boxes.

    Replaces the release that was offered before for the same machine type. Raises OperatorError if
    the release is damaged or its signature does not match `key`.
    """
    manifest = read_manifest(release, key)
    copy_program(release, manifest)
    make_folder(enrolments.releases)
    state, copy = _files(enrolments, manifest.machine)
    release.seek(0)
    with atomic_file(copy) as target:
        shutil.copyfileobj(release, target)
        # The old share does not apply to the new release, so offer nothing until the new share is
        # written.
        state.unlink(missing_ok=True)
    failed = find_failures(enrolments, manifest.version)
    write_json(state, Stage(manifest.version, share, failed))
    return manifest


def find_release(enrolments: Enrolments, name: str, machine: str) -> Path | None:
    """Return the path of the release that the box `name` may install, or None if there is none."""
    state, copy = _files(enrolments, machine)
    stage = read_json(state, Stage)
    if stage is None or is_stopped(enrolments, stage):
        return None
    # The hash includes the version, so that each release goes to different boxes first.
    drawn = int.from_bytes(hashlib.sha256(f"{stage.version} {name}".encode()).digest()) % 100
    return copy if drawn < stage.share else None


def list_stages(enrolments: Enrolments) -> dict[str, Stage]:
    """Return the staged releases by machine type."""
    paths = sorted(enrolments.releases.glob("*.json"))
    found = {path.stem: read_json(path, Stage) for path in paths}
    return {machine: stage for machine, stage in found.items() if stage is not None}


def is_stopped(enrolments: Enrolments, stage: Stage) -> bool:
    """Whether a box's update to this release has failed since the release was staged.

    If so, no other box receives the release.
    """
    return not set(find_failures(enrolments, stage.version)) <= set(stage.ignored)


def find_failures(enrolments: Enrolments, version: str) -> list[str]:
    """Return the names of the boxes whose update to `version` failed."""
    reports = {name: read_report(enrolments, name) for name in enrolments.boxes()}
    return [
        name for name, report in reports.items()
        if report and report.version == version and report.stage in OUTCOMES - {"done"}
    ]  # fmt: skip


def read_report(enrolments: Enrolments, name: str) -> UpdateRecord | None:
    """Return the box's report of its latest update, or None if it has sent none."""
    folder = enrolments.backups / name
    try:
        is_small = (folder / "last-update.json").stat().st_size <= _REPORT_BYTES
    except OSError:
        return None
    return read_update_record(folder) if is_small else None


def _files(enrolments: Enrolments, machine: str) -> tuple[Path, Path]:
    folder = enrolments.releases
    return folder / f"{machine}.json", folder / f"{machine}.release"


_NAME = re.compile(rb"[A-Za-z0-9._-]{1,200}")
_RELEASE = re.compile(rb"/?release/([a-z0-9_]{1,32})")
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
        """Open a file of the box or, for reading only, the release that is staged for it.

        Refuses appending, because `write` must know the offset for the quota.
        """
        del attrs  # attributes such as the file mode are ignored
        self._check()
        if self._traffic.open >= _OPEN_MAX:
            _refuse("too many open files")
        if machine := _RELEASE.fullmatch(path):
            file = self._open_release(machine[1].decode(), pflags)
        else:
            if pflags & asyncssh.FXF_APPEND:
                _refuse("files cannot be appended to")
            is_new = not Path(os.fsdecode(self.map_path(path))).exists()
            if is_new and len(_sizes(self._folder)) >= _FILES_MAX:
                _refuse("too many files")
            file = super().open(path, pflags, asyncssh.SFTPAttrs(permissions=0o600))
        self._traffic.open += 1
        return file

    def _open_release(self, machine: str, pflags: int) -> object:
        if pflags & ~asyncssh.FXF_READ:
            _refuse("a release can only be read")
        path = find_release(self._boxes.enrolments, self._name, machine)
        if path is None:
            raise asyncssh.SFTPNoSuchFile("no release is staged for this box")
        return path.open("rb", buffering=0)

    def close(self, file_obj: object) -> None:
        """Close a file. The library calls this at the end of the session too."""
        self._traffic.open -= 1
        cast("IO[bytes]", file_obj).close()

    async def read(self, file_obj: object, offset: int, size: int) -> bytes:
        """Read at most 4 MiB, within the box's rate limit."""
        self._check()
        data = cast("bytes", super().read(file_obj, offset, min(size, _READ_MAX)))
        await self._traffic.spend("bytes_out", len(data), self._rate)
        return data

    async def write(self, file_obj: object, offset: int, data: bytes) -> int:
        """Write within the box's rate limit. Fails if the quota is reached or the disk is full."""
        await self._traffic.spend("bytes_in", len(data), self._rate)
        self._check()
        handle = cast("IO[bytes]", file_obj).fileno()
        growth = offset + len(data) - os.fstat(handle).st_size
        if growth > 0:
            quota = max(self._boxes.limits.backup_bytes, _REPORT_BYTES)
            if used_bytes(self._folder) + growth > quota:
                _refuse(f"this box has used all of its {quota >> 20} MB for backups")
            disk = os.fstatvfs(handle)
            if disk.f_bavail * disk.f_frsize - growth < _FREE_LEAST:
                _refuse("the relay's disk is full")
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
        """Yield the files in the folder. Does not keep the folder open between files."""
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
