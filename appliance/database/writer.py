"""The single writer of a SQLite database, with group commit.

Actions that arrive together run one after another in one transaction. If an action fails, only
its own changes are rolled back. One COMMIT at synchronous=FULL makes the whole batch durable, and
only then do the callers get their results. SQL statements run on the event loop, which saves one
thread switch per statement. Operations that wait for the disk or for another process (a COMMIT on
a slow disk, a locked file) run on the writer's thread.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import apsw
from msgspec import Struct

from appliance.core.errors import Unavailable
from appliance.database.connection import Transaction, wait_for_others

log = logging.getLogger(__name__)

BATCH_LIMIT = 64
QUEUE_LIMIT = 2000
_FAST_SECONDS = 0.002
_LATEST_COUNTS = 0.1  # the weight of the latest commit in the moving average
_FATAL = (apsw.FullError, apsw.IOError, apsw.NoMemError, apsw.CorruptError)
R = TypeVar("R")


class _Queued(Struct, eq=False):
    """A queued action and, once it has run, its result or error."""

    future: "asyncio.Future[Any]"
    action: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    result: Any = None
    error: BaseException | None = None
    notices: Sequence[object] = ()


class Writer:
    """Runs actions on the writing connection. Create and use it in the same event loop."""

    def __init__(
        self,
        connection: apsw.Connection,
        new_transaction: Callable[[], Transaction],
        on_commit: Callable[[Sequence[object]], None],
        on_broken: Callable[[BaseException], None],
    ) -> None:
        """Start the writer's thread.

        `on_commit` is called with the change notices from each commit, and `on_broken` with the
        error if the disk fails.
        """
        self.commits = 0
        self.on_full: Callable[[], None] = lambda: None
        self._connection = connection
        self._new_transaction = new_transaction
        self._on_commit = on_commit
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._queue: list[_Queued] = []
        self.waiting = 0  # the number of actions that are not yet committed
        self._busy = False
        self._shut = False
        self._broken = False
        self._failing = False
        self.kept: dict[str, Any] = {}  # cached rows of some tables (see Reader.keep)
        self._version = 0  # SQLite's counter of commits by other processes
        self._commit_seconds = 1.0  # a moving average of the time that a commit takes
        self._idle: asyncio.Event | None = None
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run_jobs, name="writer")
        self._thread.start()
        connection.set_busy_timeout(0)

    def submit(
        self, action: Callable[..., R], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> "asyncio.Future[R]":
        """Queue an action. The returned future resolves when the action's changes are durable.

        Raises Unavailable if the queue is full, the disk has failed or the writer is closed.
        """
        if self._shut or self._broken or self.waiting >= QUEUE_LIMIT:
            raise Unavailable
        future: asyncio.Future[R] = self._loop.create_future()
        self.waiting += 1
        self._queue.append(_Queued(future, action, arguments, keywords))
        if len(self._queue) == 1 and not self._busy:
            self._loop.call_soon(self._begin)
        return future

    @property
    def is_idle(self) -> bool:
        """Whether the writing connection has no transaction, and no thread is using it."""
        return not (self._busy or self._broken)  # a failed disk may leave a transaction open

    def forget_stale(self) -> None:
        """Clear the cache if another process has committed. Call it in a transaction."""
        version = next(self._connection.execute("PRAGMA data_version"))[0]
        if version != self._version:
            self.kept.clear()
            self._version = version

    async def close(self) -> None:
        """Finish queued actions and end the thread. The caller must close the connection."""
        self._shut = True
        if self.waiting or self._busy:
            self._idle = asyncio.Event()
            await self._idle.wait()
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def _begin(self) -> None:
        """Start a batch with up to BATCH_LIMIT of the queued actions."""
        if self._busy or not self._queue:
            return
        self._busy = True
        batch, self._queue = self._queue[:BATCH_LIMIT], self._queue[BATCH_LIMIT:]
        if self._broken:
            self._refuse(batch)
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:  # another process is writing
            self._jobs.put(lambda: self._wait_for_lock(batch))
        except apsw.Error as error:
            self._abandon(batch, error)
        else:
            self._run(batch)

    def _run(self, batch: list[_Queued]) -> None:
        """Run all actions in the batch. If they changed data, commit.

        An action that is alone in its batch needs no SAVEPOINT: if it fails, the transaction is
        rolled back. If the disk has been fast lately, such a batch is committed on the event loop.
        This saves two thread switches. Otherwise, the commit runs on the writer's thread, so that a
        slow disk does not block the loop.
        """
        before, is_alone = self._connection.total_changes(), len(batch) == 1
        try:
            self.forget_stale()
            for queued in batch:
                self._run_action(queued, is_alone=is_alone)
            has_changes = self._connection.total_changes() != before
            if is_alone and batch[0].error is not None:
                has_changes = False
            if not has_changes:
                self._connection.execute("ROLLBACK")
        except Exception as error:  # noqa: BLE001 - after any error, nothing is committed
            self._abandon(batch, error)
            return
        if not has_changes:
            self._resolve(batch)
        elif is_alone and self._commit_seconds < _FAST_SECONDS:
            self._finish(batch, self._commit())
        else:
            self._jobs.put(lambda: self._commit_in_thread(batch))

    def _run_action(self, queued: _Queued, *, is_alone: bool) -> None:
        """Run one action. If it fails and is not alone in its batch, roll back its changes.

        Raises the action's error if SQLite rolled back the whole batch.
        """
        tx = self._new_transaction()
        tx.join(self.kept, is_alone=is_alone)
        try:
            queued.result = queued.action(tx, *queued.arguments, **queued.keywords)
        except _FATAL:
            raise
        except Exception as error:
            queued.error = error
            if not self._connection.in_transaction:  # SQLite rolled back the whole batch
                raise
            tx.undo()
            self.kept.clear()  # it may contain changes of the failed action
        else:
            tx.release()
            queued.notices = tx.notices

    def _run_jobs(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _wait_for_lock(self, batch: list[_Queued]) -> None:
        """Wait up to 5 s for other processes to release the write lock.

        Runs on the writer's thread.
        """
        try:
            wait_for_others(self._connection)
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            finally:
                self._connection.set_busy_timeout(0)
        except apsw.Error as error:
            self._loop.call_soon_threadsafe(self._abandon, batch, error)
        else:
            self._loop.call_soon_threadsafe(self._run, batch)

    def _commit(self) -> apsw.Error | None:
        """Commit the open transaction. Return the error if this fails."""
        began = time.perf_counter()
        try:
            self._connection.execute("COMMIT")
        except apsw.Error as error:
            return error
        took = time.perf_counter() - began
        self._commit_seconds += _LATEST_COUNTS * (took - self._commit_seconds)
        return None

    def _commit_in_thread(self, batch: list[_Queued]) -> None:
        """Commit the batch. Runs on the writer's thread."""
        self._loop.call_soon_threadsafe(self._finish, batch, self._commit())

    def _finish(self, batch: list[_Queued], error: apsw.Error | None) -> None:
        """Give the batch's results to its callers. If the commit failed, they get Unavailable."""
        if error is not None:
            self._abandon(batch, error)
            return
        self.commits += 1
        self._failing = False
        self._resolve(batch)

    def _abandon(self, batch: list[_Queued], error: Exception) -> None:
        """Roll back the whole batch and report Unavailable to its callers.

        If the disk failed, stop accepting writes.
        """
        self.kept.clear()
        if not self._failing:  # log only the first of consecutive failures
            self._failing = True
            log.error("database: the commit failed and its changes were rolled back: %s", error)
        is_full = isinstance(error, apsw.FullError)
        if isinstance(error, (apsw.IOError, apsw.CorruptError)) and not is_full:
            self.fail(error)
        elif self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if is_full:
            self.on_full()
        self._refuse(batch)

    def fail(self, error: BaseException) -> None:
        """Stop accepting writes because the disk failed, and call `on_broken` once."""
        if not self._broken:
            self._broken = True
            self._on_broken(error)

    def _refuse(self, batch: list[_Queued]) -> None:
        for queued in batch:
            queued.notices = ()
            queued.error = Unavailable()
        self._resolve(batch)

    def _resolve(self, batch: list[_Queued]) -> None:
        self.waiting -= len(batch)
        self._start_next()
        notices: list[object] = []
        for queued in batch:
            notices += queued.notices
            if queued.future.done():  # the caller was cancelled
                continue
            if queued.error is not None:
                queued.future.set_exception(queued.error)
            else:
                queued.future.set_result(queued.result)
        if notices:
            self._on_commit(notices)

    def _start_next(self) -> None:
        self._busy = False
        if self._queue:
            self._loop.call_soon(self._begin)
        elif self._idle is not None:
            self._idle.set()
