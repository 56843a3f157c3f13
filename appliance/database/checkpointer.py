"""WAL checkpoints, and the vacuum after an erasure.

SQLite alone checkpoints inside every so many COMMITs, and that COMMIT waits for a thousand pages
and two syncs. Here another connection copies most pages while commits go on; the few new ones are
copied between two commits, and then the log restarts. `secure_delete` overwrites freed content,
so only the log keeps it until it is cut. Copies left in a page whose rows moved go with the
nightly VACUUM.
"""

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

DUE_PAGES = 4000  # 4 MB of WAL
_FEW_PAGES = 600  # few enough to checkpoint without a noticeable delay of a commit
_MOST_PASSES = 4


class Checkpointer:
    """Checkpoints the WAL of `writing` in a thread. Bound to the event loop that creates it."""

    def __init__(
        self,
        path: Path,
        writing: apsw.Connection,
        run_between: Callable[[Callable[[], None]], None],
        on_broken: Callable[[BaseException], None],
    ) -> None:
        """`run_between`, called in the loop, runs a job on a thread between two commits.

        `on_broken` is called in the loop with the error if the disk failed.
        """
        self._connection = open_connection(path)
        self._run_between = run_between
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        # Databases of earlier versions have larger pages.
        self._scale = PAGE_BYTES / self._connection.pragma("page_size")
        self._pass_due = round(DUE_PAGES * self._scale)
        self._due = self._pass_due
        self._asked: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._is_at_work = False
        self._thread = threading.Thread(target=self._run, name="folder")
        self._thread.start()
        writing.set_wal_hook(self._note_length)  # replaces SQLite's automatic checkpoints

    def join(self) -> None:
        """End the thread and close its connection. The last connection to close checkpoints."""
        self._asked.put("end")
        self._thread.join()
        self._connection.close()

    def _note_length(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """WAL hook, called in each COMMIT with the WAL's length in pages."""
        if pages < self._pass_due:
            self._due = self._pass_due
        elif pages >= self._due and not self._is_at_work:
            self._is_at_work = True
            self._due = pages + self._pass_due  # an incomplete checkpoint is retried later
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
        """Checkpoint until few pages are left. False if the database is busy or the disk fails."""
        try:
            with quota_as_full(self._connection):
                self._copy(passes)
        except apsw.BusyError:  # a command runs a checkpoint
            return False
        except apsw.Error as trouble:  # the WAL grows, but nothing is lost
            log.warning("database: checkpoint failed: %s", trouble)
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
    """Whether a write or fsync failed, so that written data may be lost."""
    return getattr(failure, "extendedresult", 0) in _NOT_KEPT  # unknown to its types


def wipe(path: Path) -> bool:
    """VACUUM the file and truncate its WAL. False if the database was busy: try later.

    Blocks writers for about a second for each 100 MB. Call it from a thread. OperatorError if
    the disk has too little space; then nothing is changed.
    """
    connection = open_connection(path)
    try:
        _demand_room(connection, path)
        # Keep temporary files out of memory, and on the database's volume.
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
    """Checkpoint the whole WAL and truncate it. False if it was busy all the time.

    Call it from a thread.
    """
    try:
        with closing(open_connection(path)) as connection, quota_as_full(connection):
            return _cut_log(connection)
    except apsw.FullError:
        return False


def _cut_log(connection: apsw.Connection) -> bool:
    connection.set_busy_timeout(_WAIT_MILLISECONDS)  # writers are blocked while it waits
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)  # non-blocking
            busy, *_sizes = next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
            if not busy:
                return True
        except apsw.BusyError:  # the box runs a checkpoint
            pass
        time.sleep(_PAUSE_SECONDS)
    return False


def _demand_room(connection: apsw.Connection, path: Path) -> None:
    """Raise OperatorError unless the disk has room for a copy, and for the WAL to write it."""
    size = connection.pragma("page_count") * connection.pragma("page_size")
    needed = 2 * size + _SPARE
    disk = os.statvfs(path.parent)
    free = disk.f_bavail * disk.f_frsize
    if free < needed:
        raise OperatorError(
            f"{path.name} cannot be wiped: that takes {needed // _MIB + 1} MiB on the disk, "
            f"and {free // _MIB} are free"
        )
