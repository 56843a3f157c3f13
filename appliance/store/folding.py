"""Folding: moving the write-ahead log into the database file, beside the work.

SQLite by itself does this inside every so many COMMITs, and whoever waits for that one waits for
a thousand pages and two syncs. Here another connection copies most of them while commits go on;
the few that came meanwhile are copied between two commits, after which the log begins anew.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from pathlib import Path

import apsw

from appliance.store.connection import open_connection
from appliance.store.migrate import PAGE_BYTES
from appliance.store.unusable import quota_as_full

log = logging.getLogger(__name__)

DUE_PAGES = 4000  # 4 MB of log
_FEW_PAGES = 600  # no commit waits noticeably for so many
_MOST_PASSES = 4


class Folder:
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
