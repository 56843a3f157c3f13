"""Why a database file cannot be used, in one sentence, and what to do. A full disk is no damage."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

_ROOM = 256 * 1024  # what SQLite needs beside a database, and some
# The small file beside a database by which its users know of each other cannot be made.
_BESIDE = {apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP}

UNUSABLE = (
    apsw.BusyError, apsw.CantOpenError, apsw.CorruptError, apsw.FullError, apsw.IOError,
    apsw.NotADBError, apsw.ReadOnlyError,
)  # fmt: skip


@contextmanager
def quota_as_full(connection: apsw.Connection) -> Iterator[None]:
    """FullError where a quota is used up: SQLite calls that a failed write, as of a broken disk."""
    try:
        yield
    except apsw.IOError as error:
        if is_over_quota(error, connection):
            raise apsw.FullError("disk quota exceeded") from error
        raise


def is_over_quota(error: BaseException, connection: apsw.Connection) -> bool:
    """Whether `error`, the latest of that connection, is a write for which a quota had no room."""
    is_write = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_WRITE
    return is_write and connection.system_errno == errno.EDQUOT


def is_unopenable(error: BaseException) -> bool:
    """Whether what failed is the opening, or the room for it: the file itself may be sound."""
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", 0) in _BESIDE
    return isinstance(error, (apsw.CantOpenError, apsw.FullError, apsw.ReadOnlyError))


def describe_unopenable(path: Path) -> str:
    """Why `path` could not be opened, and what to do. SQLite writes beside it even to read."""
    if not path.exists():
        return describe_missing(path)
    if is_full(path.parent):
        return (
            f"{path.name} cannot be opened, for {path.parent} has no room left: make some, then "
            "try again. Nothing is damaged"
        )
    return (
        f"{path.name} cannot be opened, for nothing can be written in {path.parent}: "
        "check the disk and whom the files belong to, then try again"
    )


def describe_missing(path: Path) -> str:
    """What to do where no database is and one was."""
    return (
        f"{path.name} is missing from {path.parent}: put the last good backup in place with "
        f"venuebox restore --latest --data {path.parent}"
    )


def describe_newer(path: Path, found: int, known: int) -> str:
    """What to do for whoever has gone back to an older program."""
    return (
        f"{path.name} was written by a newer venuebox (schema {found}, this one knows {known}): "
        "install that version again; nothing was changed"
    )


def describe_unusable(path: Path, error: apsw.Error) -> str:
    """Why a command could not read or write `path`."""
    if isinstance(error, apsw.BusyError):
        return f"{path.name} was in use all the time: nothing was changed, try again"
    if isinstance(error, apsw.FullError):
        return f"{path.parent} has no room left: nothing was changed, make some and try again"
    if is_unopenable(error):
        return describe_unopenable(path)
    return f"{path.name} cannot be used ({error}): nothing was changed, run venuebox doctor"


def is_full(folder: Path) -> bool:
    """Whether its volume has hardly any room left."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize < _ROOM
