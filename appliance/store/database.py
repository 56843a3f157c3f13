"""One SQLite file: its one writer, its readers, and the promise that what was answered stays.

Writing is group commit: the writer thread takes every action that waits, runs each in its own
SAVEPOINT inside one BEGIN IMMEDIATE, commits once at synchronous=FULL, and only then answers.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from appliance.clock import Clock, ZoneDatabase
from appliance.errors import Unavailable
from appliance.store.connection import Reader, Transaction, open_connection
from appliance.tokens import Tokens

log = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")
Listener = Callable[[Sequence[object]], None]

BATCH_LIMIT = 256
QUEUE_LIMIT = 2000
_READER_THREADS = 2


class _Waiting:
    """An action that waits for the writer, and later its outcome."""

    __slots__ = ("action", "arguments", "error", "future", "keywords", "notices", "result")

    def __init__(
        self,
        future: "asyncio.Future[Any]",
        action: Callable[..., Any],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> None:
        self.future = future
        self.action = action
        self.arguments = arguments
        self.keywords = keywords
        self.result: Any = None
        self.error: BaseException | None = None
        self.notices: list[object] = []


class Database:
    """The live database of one environment. Belongs to the event loop that opened it."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        tokens: Tokens,
        zones: ZoneDatabase,
        on_broken: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Open `path`, which must be a migrated box database (see `migrate`).

        `on_broken` is called once, in the loop, when the disk failed: nothing is
        acknowledged any more and the process should end (an fsync is never retried).
        """
        self.path = path
        self.clock = clock
        self.tokens = tokens
        self.zones = zones
        self.commits = 0
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._waiting = 0
        self._shut = False
        self._broken = False
        self._listeners: list[Listener] = []
        self._writer_connection = open_connection(path)
        self._peeker = Reader(open_connection(path, writable=False), clock, zones)
        self._readers: queue.SimpleQueue[Reader] = queue.SimpleQueue()
        for _ in range(_READER_THREADS):
            self._readers.put(Reader(open_connection(path, writable=False), clock, zones))
        self._pool = ThreadPoolExecutor(_READER_THREADS, thread_name_prefix="reader")
        self._thread = threading.Thread(target=self._run, name=f"writer-{path.stem}")
        self._thread.start()

    def on_commit(self, listener: Listener) -> None:
        """Call `listener` in the loop with the notices of each commit, after the commit."""
        self._listeners.append(listener)

    async def write(
        self, action: Callable[Concatenate[Transaction, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run `action(tx, …)` on the writer; its result once it is durable on the disk.

        Raises what the action raises (and then nothing of it is kept), or Unavailable when
        the queue is full, the disk is full, the file is locked or the box is stopping.
        """
        if self._shut or self._broken or self._waiting >= QUEUE_LIMIT:
            raise Unavailable
        future: asyncio.Future[R] = self._loop.create_future()
        self._waiting += 1
        self._queue.put(_Waiting(future, action, args, kwargs))
        return await future

    async def read(
        self, query: Callable[Concatenate[Reader, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run `query(reader, …)` on a reader thread, in one snapshot of committed state."""
        if self._shut:
            raise Unavailable
        return await self._loop.run_in_executor(
            self._pool, self._read_in_thread, query, args, kwargs
        )

    def peek(
        self, query: Callable[Concatenate[Reader, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run a query of a few indexed rows at once, on the loop's own connection.

        For lookups that cost less than handing them to a thread would.
        """
        if self._shut:
            raise Unavailable
        return self._snapshot(self._peeker, query, args, kwargs)

    async def close(self) -> None:
        """Finish what waits, fold the WAL into the file and close every connection."""
        if self._shut:
            return
        self._shut = True
        self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        await self._loop.run_in_executor(None, self._pool.shutdown)
        self._peeker.connection.close()
        while not self._readers.empty():
            self._readers.get().connection.close()
        self._writer_connection.close()

    def _read_in_thread(
        self, query: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> R:
        reader = self._readers.get()
        try:
            return self._snapshot(reader, query, args, kwargs)
        finally:
            self._readers.put(reader)

    @staticmethod
    def _snapshot(
        reader: Reader, query: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> R:
        try:
            reader.connection.execute("BEGIN")
            try:
                return query(reader, *args, **kwargs)
            finally:
                reader.connection.execute("ROLLBACK")
        except (apsw.BusyError, apsw.IOError, apsw.CantOpenError) as trouble:
            log.warning("a read failed: %s", trouble)
            raise Unavailable from trouble

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, stop = [first], False
            while len(batch) < BATCH_LIMIT and not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    stop = True
                    break
                batch.append(following)
            if self._broken:
                self._refuse(batch)
            else:
                self._commit_together(batch)
            self._loop.call_soon_threadsafe(self._answer, batch)
            if stop:
                return

    def _commit_together(self, batch: list[_Waiting]) -> None:
        connection = self._writer_connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for waiting in batch:
                self._run_alone(connection, waiting)
            connection.execute("COMMIT")
            self.commits += 1
        except Exception as trouble:  # noqa: BLE001 - whatever it was, nothing was committed
            self._abandon(connection, batch, trouble)

    def _run_alone(self, connection: apsw.Connection, waiting: _Waiting) -> None:
        tx = Transaction(connection, self.clock, self.zones, self.tokens)
        connection.execute("SAVEPOINT action")
        try:
            waiting.result = waiting.action(tx, *waiting.arguments, **waiting.keywords)
            waiting.notices = tx.notices
        except (apsw.FullError, apsw.IOError, apsw.NoMemError, apsw.CorruptError):
            raise
        except Exception as error:
            waiting.error = error
            if not connection.in_transaction:  # SQLite gave up the whole batch
                raise
            connection.execute("ROLLBACK TO action")
        connection.execute("RELEASE action")

    def _abandon(
        self, connection: apsw.Connection, batch: list[_Waiting], trouble: Exception
    ) -> None:
        """Nothing of the batch is durable: refuse it all. A failing disk ends the service."""
        log.error("a commit failed, nothing of it is kept: %s", trouble)
        if isinstance(trouble, (apsw.IOError, apsw.CorruptError)):
            self._broken = True
            if self._on_broken is not None:
                self._loop.call_soon_threadsafe(self._on_broken, trouble)
        elif connection.in_transaction:
            connection.execute("ROLLBACK")
        self._refuse(batch)

    @staticmethod
    def _refuse(batch: list[_Waiting]) -> None:
        for waiting in batch:
            waiting.notices = []
            waiting.error = Unavailable()

    def _answer(self, batch: list[_Waiting]) -> None:
        self._waiting -= len(batch)
        notices: list[object] = []
        for waiting in batch:
            notices += waiting.notices
            if waiting.future.done():
                continue
            if waiting.error is not None:
                waiting.future.set_exception(waiting.error)
            else:
                waiting.future.set_result(waiting.result)
        if notices:
            for listener in self._listeners:
                listener(notices)
