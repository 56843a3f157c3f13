"""Files that survive a power cut, written whole or not at all, and who owns them."""

import errno
import fcntl
import os
import pwd
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from appliance.core.errors import OperatorError

PART = ".part"
_LOOK_SECONDS = 0.1
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP}  # of a folder, on some volumes


def sync(path: Path) -> None:
    """Wait until the disk has the file, or the folder's entries. OSError when it cannot."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file, 0600, that becomes `path` when the block succeeds and is removed when it fails.

    Until then its own `name` ends with PART.
    """
    with open_part(path) as file:
        yield file
        put_in_place(file, path)


@contextmanager
def open_part(path: Path) -> Iterator[BinaryIO]:
    """A file, 0600, beside `path`, removed unless the block puts it in place."""
    aside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}{PART}")
    aside.unlink(missing_ok=True)  # left by a power cut
    try:
        with open(aside, "xb", opener=open_private) as file:
            yield file
    finally:
        aside.unlink(missing_ok=True)


def put_in_place(part: BinaryIO, path: Path) -> None:
    """Let the part be `path` from here on."""
    part.flush()
    os.fsync(part.fileno())
    Path(part.name).replace(path)
    try:
        sync(path.parent)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def atomic_write(path: Path, content: bytes) -> None:
    """Replace the file with `content`: after a power cut it is the old one or the new one."""
    with atomic_file(path) as file:
        file.write(content)


def read_private(path: Path) -> bytes:
    """The content of a secret file; OperatorError when it cannot be read, or others could.

    FileNotFoundError when it is missing.
    """
    try:
        mode, content = path.stat().st_mode, path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OperatorError(f"{path} cannot be read ({error.strerror}): run as its owner") from None
    if mode & 0o077:
        raise OperatorError(f"{path} can be read by others: run chmod 600 {path}")
    return content


@contextmanager
def exclusive(folder: Path, patience: float, what: str) -> Iterator[None]:
    """Hold a lock on a folder, waiting for it up to `patience` seconds.

    Another thread of this process counts as another, and the kernel frees the lock of a process
    that ends. OperatorError says that `what` does not end.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + patience
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > until:
                raise OperatorError(
                    f"{what} has not ended for {patience:.0f} seconds: try again later"
                )
            time.sleep(_LOOK_SECONDS)
        yield
    finally:
        os.close(handle)


def open_private(path: str, flags: int) -> int:
    """An `opener` of files, 0600."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def become_owner(folder: Path) -> None:
    """As root, give up root's rights for good where `folder` belongs to another user.

    A link that this user left in it then leads to nothing of root's, and what is made in it
    belongs to this user.
    """
    if os.geteuid() == 0 and (uid := find_owner(folder)) != 0:
        gid, groups = _find_groups(uid)
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)
        program = Path(__file__).parent
        if not os.access(program, os.R_OK | os.X_OK):
            raise OperatorError(
                f"{folder} belongs to {name_user(uid)}, who cannot read the program in {program}: "
                "put it where everybody may go, such as /opt"
            )


def find_owner(folder: Path) -> int:
    """A user's number; one's own where there is no folder yet."""
    try:
        return folder.stat().st_uid
    except (FileNotFoundError, NotADirectoryError):
        return os.geteuid()


@contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """As root, act as another user for a moment: the whole process, so nothing runs beside it."""
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
    """A private folder, and those above it that are missing."""
    for each in (*reversed(path.parents), path):
        each.mkdir(mode=0o700, exist_ok=True)


def name_user(uid: int) -> str:
    """As `root`; a number without a name as `user 1000`."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _find_groups(uid: int) -> tuple[int, list[int]]:
    """The user's own group, and all groups. A number without a name has that group alone."""
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return uid, [uid]
    return user.pw_gid, os.getgrouplist(user.pw_name, user.pw_gid)
