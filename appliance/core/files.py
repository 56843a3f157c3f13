"""Atomic and durable file writes, folder locks, and file ownership."""

import errno
import fcntl
import os
import pwd
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from appliance.core.errors import OperatorError

T = TypeVar("T")
PART = ".part"
_RETRY_SECONDS = 0.1
_MIB = 1 << 20
# fsync raises these errors on volumes that cannot sync a folder.
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP}


def sync(path: Path) -> None:
    """Fsync a file, or the directory entries of a folder. Raises OSError on failure."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file with mode 0600 that replaces `path` if the block succeeds.

    During the block, the file's name ends with PART. If the block fails, the file is deleted.
    """
    with open_part(path) as file:
        yield file
        put_in_place(file, path)


@contextmanager
def open_part(path: Path) -> Iterator[BinaryIO]:
    """Yield a file with mode 0600 in the folder of `path`.

    The file is deleted unless the block passes it to `put_in_place`.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}{PART}")
    aside.unlink(missing_ok=True)  # a power cut may have left this file
    try:
        with open(aside, "xb", opener=open_private) as file:
            yield file
    finally:
        aside.unlink(missing_ok=True)


def put_in_place(part: BinaryIO, path: Path) -> None:
    """Fsync `part` and rename it to `path`. Raises OSError on failure."""
    part.flush()
    os.fsync(part.fileno())
    Path(part.name).replace(path)
    try:
        sync(path.parent)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def atomic_write(path: Path, content: bytes) -> None:
    """Write `content` to `path`. A power cut leaves either the old or the new content."""
    with atomic_file(path) as file:
        file.write(content)


def write_json(path: Path, content: object) -> None:
    """Write `content`, such as a dataclass, to `path` as JSON, with `atomic_write`."""
    atomic_write(path, msgspec.json.encode(content))


def read_json(path: Path, kind: type[T]) -> T | None:
    """Read a file that `write_json` wrote. Return None if it is missing or damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        return None


def read_private(path: Path) -> bytes:
    """Return the content of a secret file.

    Raises FileNotFoundError if the file is missing, and OperatorError if it cannot be read or if
    its mode lets other users read it.
    """
    try:
        mode, content = path.stat().st_mode, path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OperatorError(
            f"{path} cannot be read ({error.strerror}). Run this command as the file's owner."
        ) from None
    if mode & 0o077:
        raise OperatorError(f"{path} can be read by other users. Run chmod 600 {path}.")
    return content


@contextmanager
def exclusive(folder: Path, patience: float, message: str) -> Iterator[None]:
    """Hold an exclusive flock on `folder`. Wait at most `patience` seconds for it.

    The lock also excludes other threads of this process. The kernel releases it when the process
    ends. Raises OperatorError if the folder cannot be opened, or with `message` if another process
    or thread holds the lock for too long.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise OperatorError(f"{folder} cannot be opened: {error.strerror}") from None
    try:
        until = time.monotonic() + patience
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() >= until:
                raise OperatorError(message)
            time.sleep(_RETRY_SECONDS)
        yield
    finally:
        os.close(handle)


def require_space(folder: Path, size: int, failure: str) -> None:
    """Raise OperatorError unless `size` bytes are free on the volume of `folder`.

    The message begins with `failure`, a sentence that says what cannot be done.
    """
    free = shutil.disk_usage(folder).free
    if free < size:
        raise OperatorError(
            f"{failure}. This needs {size // _MIB + 1} MiB of disk space in {folder}, but only "
            f"{free // _MIB} MiB are free."
        )


def open_private(path: str, flags: int) -> int:
    """Open a file with mode 0600. Pass this function to `open` as the `opener` argument."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def become_owner(folder: Path) -> None:
    """If this process runs as root, switch it permanently to the owner of `folder`.

    A symbolic link in the folder then cannot give access to files that only root may open, and new
    files belong to the owner. Raises OperatorError if the owner cannot read the program's files.
    """
    if os.geteuid() == 0 and (uid := find_owner(folder)) != 0:
        gid, groups = _find_groups(uid)
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)
        program = Path(__file__).parents[1]
        if not os.access(program, os.R_OK | os.X_OK):
            raise OperatorError(
                f"{folder} belongs to {name_user(uid)}, who cannot read the program in "
                f"{program}. Install it where every user can read it, such as /opt."
            )


def find_owner(folder: Path) -> int:
    """Return the uid of the folder's owner, or the current uid if the folder is missing."""
    try:
        return folder.stat().st_uid
    except (FileNotFoundError, NotADirectoryError):
        return os.geteuid()


@contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """If this process runs as root, run the block as user `uid`.

    The user changes for all threads, so run nothing else during the block.
    """
    if os.geteuid() != 0 or uid == 0:
        yield
        return
    before = os.getgroups()
    gid, groups = _find_groups(uid)
    os.setgroups(groups)
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents with mode 0700."""
    for folder in (*reversed(path.parents), path):
        folder.mkdir(mode=0o700, exist_ok=True)


def name_user(uid: int) -> str:
    """Return the name of the user `uid`, such as `root`, or `user 1000` if there is no account."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _find_groups(uid: int) -> tuple[int, list[int]]:
    """Return the primary group and all groups of the user `uid`.

    If there is no user account with this uid, the only group is the one with the same number.
    """
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return uid, [uid]
    return user.pw_gid, os.getgrouplist(user.pw_name, user.pw_gid)
