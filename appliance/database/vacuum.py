"""Copies without deleted content, and removing deleted content from a database and its log.

`secure_delete` overwrites deleted content in the database file. The write-ahead log (WAL) still
contains it until it is truncated, and so may the unused space of a page whose rows were moved; the
nightly VACUUM removes that.
"""

import time
from contextlib import closing
from pathlib import Path

import apsw

from appliance.core.errors import OperatorError
from appliance.core.files import require_space
from appliance.database.connection import (
    DAMAGE,
    describe_unopenable,
    is_unopenable,
    open_connection,
    open_for_command,
)

_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
_WAIT_MILLISECONDS = 250
_MIB = 1 << 20
_LOST_WRITES = frozenset({
    apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC,
})  # fmt: skip


def is_lost(error: apsw.IOError) -> bool:
    """Whether `error` is a failed write or fsync, after which written data may be lost."""
    # The type stubs of apsw lack this attribute.
    return getattr(error, "extendedresult", 0) in _LOST_WRITES


def write_copy(connection: apsw.Connection, copy: Path) -> None:
    """Write a snapshot of the database to `copy`, with mode 0600, without blocking writers.

    The copy has no deleted content. If a page is damaged or the disk is full, raises apsw.Error and
    leaves no file behind.
    """
    copy.touch(mode=0o600)  # SQLite writes into an empty file
    try:
        connection.execute("VACUUM INTO :copy", {"copy": str(copy)})
    except BaseException:
        copy.unlink()
        raise


def copy_database(path: Path, copy: Path) -> None:
    """Write a snapshot of the database at `path` to `copy`, without blocking writers.

    Raises OperatorError if a page is damaged or the database cannot be opened, and OSError if the
    disk is full.
    """
    try:
        with closing(open_for_command(path)) as connection:
            write_copy(connection, copy)
    except apsw.FullError as error:
        raise OSError(f"there is not enough space for a copy of {path.name}") from error
    except DAMAGE as error:
        if is_unopenable(error):
            raise OperatorError(describe_unopenable(path)) from None
        raise OperatorError(f"{path.name} is damaged ({error}). Run venuebox doctor.") from None


def wipe(path: Path) -> bool:
    """Vacuum the database and truncate its WAL. Call it from a thread.

    Returns False if the database was busy or the disk became full. Blocks writers for about one
    second per 100 MB. Raises OperatorError, and changes nothing, if the disk has too little free
    space.
    """
    connection = open_connection(path)
    try:
        _check_free_space(connection, path)
        # VACUUM may need a lot of temporary space, so use the database's volume, not memory.
        connection.pragma("temp_store_directory", str(path.parent.absolute()))
        connection.execute("PRAGMA temp_store = FILE")
        connection.execute("PRAGMA cache_size = -2000")
        connection.execute("VACUUM")
        return _truncate_wal(connection)
    except (apsw.BusyError, apsw.LockedError, apsw.FullError):
        return False
    finally:
        connection.close()


def cut_log(path: Path) -> bool:
    """Checkpoint the whole WAL and truncate it. Call it from a thread.

    Returns False if the disk was full or the database was busy for 10 s.
    """
    try:
        with closing(open_connection(path)) as connection:
            return _truncate_wal(connection)
    except apsw.FullError:
        return False


def _truncate_wal(connection: apsw.Connection) -> bool:
    connection.set_busy_timeout(_WAIT_MILLISECONDS)  # short, because the wait blocks writers
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)  # does not block writers
            busy, *_sizes = next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
            if not busy:
                return True
        except apsw.BusyError:  # the box is running a checkpoint
            pass
        time.sleep(_PAUSE_SECONDS)
    return False


def _check_free_space(connection: apsw.Connection, path: Path) -> None:
    """Raise OperatorError unless the free disk space is at least twice the database's size."""
    size = connection.pragma("page_count") * connection.pragma("page_size")
    require_space(path.parent, 2 * size + _MIB, f"{path.name} cannot be vacuumed")
