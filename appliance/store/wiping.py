"""Wiping: nothing that was erased is left in the WAL, nor between the rows of a database.

`secure_delete` overwrites what is freed, so that the WAL alone keeps it until it is cut. The
copies that stay in a page when its rows move to another one go with the VACUUM of the night.
"""

import os
import time
from contextlib import closing
from pathlib import Path

import apsw

from appliance.errors import Trouble
from appliance.store.connection import open_connection
from appliance.store.unusable import quota_as_full

_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
_WAIT_MILLISECONDS = 250
_MIB = 1 << 20
_SPARE = _MIB
_NOT_KEPT = frozenset({
    apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC,
})  # fmt: skip


def is_lost(failure: apsw.IOError) -> bool:
    """Whether the disk did not keep what was written: nobody may rely on it any more."""
    return getattr(failure, "extendedresult", 0) in _NOT_KEPT  # unknown to its types


def wipe(path: Path) -> bool:
    """VACUUM the file and cut its WAL; False when others were in the way: try later.

    Whoever writes meanwhile waits: about a second for 100 MB. Call it from a thread. Trouble when
    the disk has no room for it; then nothing was tried.
    """
    connection = open_connection(path)
    try:
        _demand_room(connection, path)
        # Not all of it in memory, nor on another disk than the box's.
        connection.pragma("temp_store_directory", str(path.parent.absolute()))
        connection.execute("PRAGMA temp_store = FILE")
        connection.execute("PRAGMA cache_size = -2000")
        with quota_as_full(connection):
            connection.execute("VACUUM")
            return _cut_log(connection)
    except (apsw.BusyError, apsw.LockedError, apsw.FullError):
        return False
    finally:
        connection.close()


def cut_log(path: Path) -> bool:
    """Move the whole WAL into the file and cut it; False when others read of it all the time.

    Call it from a thread.
    """
    try:
        with closing(open_connection(path)) as connection, quota_as_full(connection):
            return _cut_log(connection)
    except apsw.FullError:
        return False


def _cut_log(connection: apsw.Connection) -> bool:
    connection.set_busy_timeout(_WAIT_MILLISECONDS)  # while it waits nobody can write
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)  # most, beside the work
            busy, *_sizes = next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
            if not busy:
                return True
        except apsw.BusyError:  # the box folds it just now
            pass
        time.sleep(_PAUSE_SECONDS)
    return False


def _demand_room(connection: apsw.Connection, path: Path) -> None:
    """For the new copy, and for the WAL through which it comes back."""
    size = connection.pragma("page_count") * connection.pragma("page_size")
    needed = 2 * size + _SPARE
    disk = os.statvfs(path.parent)
    free = disk.f_bavail * disk.f_frsize
    if free < needed:
        raise Trouble(
            f"{path.name} cannot be wiped: that takes {needed // _MIB + 1} MiB on the disk, "
            f"and {free // _MIB} are free"
        )
