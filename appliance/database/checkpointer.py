"""WAL checkpoints, VACUUM, and truncation of the WAL after an erasure.

SQLite's automatic checkpoint runs inside a COMMIT, which then takes longer, because a thousand or
more pages are copied and synced. Here, a second connection copies most pages while commits
continue. The few remaining pages are copied between two commits. SQLite then writes the next commit
to the start of the WAL.

`secure_delete` overwrites deleted content in the database file. After an erasure, the WAL still
contains the content until it is truncated. Content may also remain in the unused space of a page
whose rows were moved; the nightly VACUUM removes it.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from appliance.core.files import require_space
from appliance.database.connection import open_connection

log = logging.getLogger(__name__)

DUE_PAGES = 4000  # checkpoint at this length of the WAL, which is about 4 MB
_FEW_PAGES = 600  # few enough to copy without noticeably delaying a commit
_MOST_PASSES = 4


class Checkpointer:
    """Checkpoints the WAL in a thread. Create and use it in the same event loop."""

    def __init__(
        self,
        path: Path,
        writing: apsw.Connection,
        run_between: Callable[[Callable[[], None]], None],
        on_broken: Callable[[BaseException], None],
    ) -> None:
        """Start checkpointing the commits of the connection `writing`.

        `run_between` is called in the loop and must run the given job on a thread between two
        commits. `on_broken` is called in the loop with the error if the disk fails.
        """
        self._connection = open_connection(path)
        self._run_between = run_between
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._due = DUE_PAGES
        self._requests: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._is_running = False
        self._thread = threading.Thread(target=self._run, name="checkpointer")
        self._thread.start()
        writing.set_wal_hook(self._note_length)  # replaces SQLite's automatic checkpoints

    def join(self) -> None:
        """Stop the thread and close its connection.

        When the last connection to the database is closed, SQLite checkpoints the WAL.
        """
        self._requests.put("end")
        self._thread.join()
        self._connection.close()

    def _note_length(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """Request a checkpoint if the WAL is too long. SQLite calls this hook in each COMMIT."""
        if pages < DUE_PAGES:
            self._due = DUE_PAGES
        elif pages >= self._due and not self._is_running:
            self._is_running = True
            self._due = pages + DUE_PAGES  # if incomplete, retry when the WAL is this long
            self._requests.put("checkpoint")
        return apsw.SQLITE_OK

    def _run(self) -> None:
        while self._requests.get() == "checkpoint":
            if self._checkpoint(passes=_MOST_PASSES):
                self._loop.call_soon_threadsafe(self._run_between, self._checkpoint_the_rest)
            else:
                self._is_running = False

    def _checkpoint_the_rest(self) -> None:
        self._checkpoint(passes=1)
        self._is_running = False

    def _checkpoint(self, passes: int) -> bool:
        """Checkpoint until few pages are left.

        Returns False if the database is busy or the disk fails.
        """
        try:
            for _ in range(passes):
                pages, done = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                if pages - done <= _FEW_PAGES:
                    break
        except apsw.BusyError:  # another process is running a checkpoint
            return False
        except apsw.Error as error:  # no data is lost, but the WAL keeps growing
            log.warning("database: checkpoint failed: %s", error)
            if isinstance(error, (apsw.IOError, apsw.CorruptError)):
                self._loop.call_soon_threadsafe(self._on_broken, error)
            return False
        return True


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


def wipe(path: Path) -> bool:
    """Vacuum the database and truncate its WAL. Call it from a thread.

    Returns False if the database was busy or the disk became full. Blocks writers for about one
    second per 100 MB. Raises OperatorError, and changes nothing, if the disk has too little free
    space.
    """
    connection = open_connection(path)
    try:
        _check_free_space(connection, path)
        # VACUUM may need much temporary space, so use the database's volume instead of memory.
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
