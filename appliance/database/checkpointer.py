"""Checkpoints of the write-ahead log, and the vacuum after an erasure."""

import asyncio
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from appliance.core.errors import OperatorError
from appliance.database.connection import open_connection, quota_as_full
from appliance.database.migrate import PAGE_BYTES

log = logging.getLogger(__name__)

DUE_PAGES = 4000  # 4 MB of log
_FEW_PAGES = 600  # no commit waits noticeably for so many
_MOST_PASSES = 4


class Checkpointer:
    """Folds the log that `writing` writes. Belongs to the event loop in which it is made."""

    def __init__(
        self,
        path: Path,
        writing: apsw.Connection,
        run_between: Callable[[Callable[[], None]], None],
        on_broken: Callable[[BaseException], None],
    ) -> None:
        """`run_between`, called in the loop, runs a job on some thread between two commits.

        `on_broken` hears, in the loop, that the disk failed.
        """
        self._connection = open_connection(path)
        self._run_between = run_between
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        # Boxes of earlier versions have larger pages.
        self._scale = PAGE_BYTES / self._connection.pragma("page_size")
        self._pass_due = round(DUE_PAGES * self._scale)
        self._due = self._pass_due
        self._asked: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._is_at_work = False
        self._thread = threading.Thread(target=self._run, name="folder")
        self._thread.start()
        writing.set_wal_hook(self._note_length)  # takes the place of SQLite's own folding

    def join(self) -> None:
        """End the thread and close its connection; whoever closes last folds what is left."""
        self._asked.put("end")
        self._thread.join()
        self._connection.close()

    def _note_length(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """In each COMMIT: how long the log has grown."""
        if pages < self._pass_due:
            self._due = self._pass_due
        elif pages >= self._due and not self._is_at_work:
            self._is_at_work = True
            self._due = pages + self._pass_due  # a pass that cannot end is tried again later
            self._asked.put("fold")
        return apsw.SQLITE_OK

    def _run(self) -> None:
        while self._asked.get() == "fold":
            if self._fold(passes=_MOST_PASSES):
                self._loop.call_soon_threadsafe(self._run_between, self._fold_the_rest)
            else:
                self._is_at_work = False

    def _fold_the_rest(self) -> None:
        self._fold(passes=1)
        self._is_at_work = False

    def _fold(self, passes: int) -> bool:
        """Copy the log until little is left; whether the disk let it."""
        try:
            with quota_as_full(self._connection):
                self._copy(passes)
        except apsw.BusyError:  # a command folds it just now
            return False
        except apsw.Error as trouble:  # the log grows, and loses nothing
            log.warning("the write-ahead log could not be folded into the database: %s", trouble)
            if isinstance(trouble, (apsw.IOError, apsw.CorruptError)):
                self._loop.call_soon_threadsafe(self._on_broken, trouble)
            return False
        return True

    def _copy(self, passes: int) -> None:
        for _ in range(passes):
            pages, folded = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if pages - folded <= _FEW_PAGES * self._scale:
                break


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

    Writers wait meanwhile: about a second for 100 MB. Call it from a thread. OperatorError when
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
        raise OperatorError(
            f"{path.name} cannot be wiped: that takes {needed // _MIB + 1} MiB on the disk, "
            f"and {free // _MIB} are free"
        )
