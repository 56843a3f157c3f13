"""One SQLite file: readers, and the one writer with group commit."""

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
from appliance.core.errors import Unavailable, log_exception
from appliance.core.tokens import Tokens
from appliance.database.checkpointer import Checkpointer, cut_log, is_lost, wipe
from appliance.database.connection import (
    Reader,
    Transaction,
    is_over_quota,
    open_connection,
    wait_for_others,
)
from appliance.database.wal import FilesBeside, Watermark

log = logging.getLogger(__name__)

BATCH_LIMIT = 64
GATHER_LIMIT = 8  # more wait for the next commit: the loop works while the disk does
QUEUE_LIMIT = 2000
_FATAL = (apsw.FullError, apsw.IOError, apsw.NoMemError, apsw.CorruptError)


class _Waiting:
    """An action that waits for its turn, and later its outcome."""

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
        self.notices: Sequence[object] = ()


class Writer:
    """Owns the writing connection. Belongs to the event loop in which it is made."""

    def __init__(
        self,
        connection: apsw.Connection,
        new_transaction: Callable[[], Transaction],
        on_commit: Callable[[Sequence[object]], None],
        on_broken: Callable[[BaseException], None],
        on_durable: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_commit` hears the notices of each commit; `on_broken` that the disk failed.

        `on_durable` is called after each commit, before anybody is answered.
        """
        self.commits = 0
        self.on_full: Callable[[], None] = lambda: None
        self._connection = connection
        self._new_transaction = new_transaction
        self._on_commit = on_commit
        self._on_broken = on_broken
        self._on_durable = on_durable
        self._loop = asyncio.get_running_loop()
        self._gathered: list[_Waiting] = []
        self._gathered_before = 0
        self._waiting = 0
        self._busy = False
        self._shut = False
        self._broken = False
        self._failing = False
        self._between: Callable[[], None] | None = None
        self._idle: asyncio.Event | None = None
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run_jobs, name="writer")
        self._thread.start()
        connection.set_busy_timeout(0)

    def submit(
        self, action: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> "asyncio.Future[Any]":
        """Queue an action; its outcome once it is durable. Unavailable when there is no room."""
        if self._shut or self._broken or self._waiting >= QUEUE_LIMIT:
            raise Unavailable
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting += 1
        self._gathered.append(_Waiting(future, action, arguments, keywords))
        if len(self._gathered) == 1 and not self._busy:
            self._gathered_before = 0
            self._loop.call_soon(self._begin)
        return future

    @property
    def waiting(self) -> int:
        """How many actions wait for their commit."""
        return self._waiting

    def run_between(self, job: Callable[[], None]) -> None:
        """Run `job` on the writer's thread, between two commits."""
        self._between = job
        if not self._busy:
            self._go_on()

    async def close(self) -> None:
        """Finish what waits, and end the thread. The connection is the caller's to close."""
        self._shut = True
        if self._waiting or self._busy:
            self._idle = asyncio.Event()
            await self._idle.wait()
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def _begin(self) -> None:
        """Begin a batch, unless this turn of the loop brought a few more to share its commit."""
        if self._busy or not self._gathered:
            return
        if self._gathered_before < len(self._gathered) < GATHER_LIMIT:
            self._gathered_before = len(self._gathered)
            self._loop.call_soon(self._begin)
            return
        self._busy = True
        batch, self._gathered = self._gathered[:BATCH_LIMIT], self._gathered[BATCH_LIMIT:]
        if self._broken:
            self._refuse(batch)
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:  # a command is writing beside the box
            self._jobs.put(lambda: self._wait_for_lock(batch))
        except apsw.Error as trouble:
            self._abandon(batch, trouble)
        else:
            self._run(batch)

    def _run(self, batch: list[_Waiting]) -> None:
        """Every statement of the batch, but for its COMMIT."""
        before = self._connection.total_changes()
        try:
            for waiting in batch:
                self._run_alone(waiting)
            is_for_the_disk = self._connection.total_changes() != before
            if not is_for_the_disk:
                self._connection.execute("COMMIT")
        except Exception as trouble:  # noqa: BLE001 - whatever it was, nothing was committed
            self._abandon(batch, trouble)
            return
        if is_for_the_disk:
            self._jobs.put(lambda: self._commit(batch))
        else:
            self._answer(batch)

    def _run_alone(self, waiting: _Waiting) -> None:
        tx = self._new_transaction()
        try:
            waiting.result = waiting.action(tx, *waiting.arguments, **waiting.keywords)
        except _FATAL:
            raise
        except Exception as error:
            waiting.error = error
            if not self._connection.in_transaction:  # SQLite gave up the whole batch
                raise
            tx.undo()
        else:
            tx.keep()
            waiting.notices = tx.notices

    def _run_jobs(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _wait_for_lock(self, batch: list[_Waiting]) -> None:
        """On the thread: wait up to 5 s for whoever writes beside the box."""
        try:
            wait_for_others(self._connection)
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            finally:
                self._connection.set_busy_timeout(0)
        except apsw.Error as trouble:
            self._loop.call_soon_threadsafe(self._abandon, batch, trouble)
        else:
            self._loop.call_soon_threadsafe(self._run, batch)

    def _commit(self, batch: list[_Waiting]) -> None:
        """On the thread: make the batch durable."""
        try:
            self._connection.execute("COMMIT")
        except apsw.Error as trouble:
            self._loop.call_soon_threadsafe(self._abandon, batch, trouble)
        else:
            self.commits += 1
            self._failing = False
            self._loop.call_soon_threadsafe(self._acknowledge, batch)

    def _run_between(self, job: Callable[[], None]) -> None:
        """On the thread."""
        try:
            job()
        finally:
            self._loop.call_soon_threadsafe(self._go_on)

    def _abandon(self, batch: list[_Waiting], trouble: Exception) -> None:
        """Nothing of the batch is durable: refuse it all. A failing disk ends the service."""
        if not self._failing:  # a full disk refuses thousands of commits for one reason
            self._failing = True
            log.error("commits fail, nothing of them is kept: %s", trouble)
        is_full = isinstance(trouble, apsw.FullError) or is_over_quota(trouble, self._connection)
        if isinstance(trouble, (apsw.IOError, apsw.CorruptError)) and not is_full:
            self.fail(trouble)
        elif self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if is_full:
            self.on_full()
        self._refuse(batch)

    def fail(self, trouble: BaseException) -> None:
        """The disk failed: nothing is taken any more."""
        if not self._broken:
            self._broken = True
            self._on_broken(trouble)

    def _refuse(self, batch: list[_Waiting]) -> None:
        for waiting in batch:
            waiting.notices = ()
            waiting.error = Unavailable()
        self._answer(batch)

    def _acknowledge(self, batch: list[_Waiting]) -> None:
        self._on_durable()
        self._answer(batch)

    def _answer(self, batch: list[_Waiting]) -> None:
        self._waiting -= len(batch)
        self._go_on()
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
            self._on_commit(notices)

    def _go_on(self) -> None:
        """The connection is free: for what is to be done between commits, or the next batch."""
        job, self._between = self._between, None
        self._busy = job is not None
        if job is not None:
            self._jobs.put(lambda: self._run_between(job))
        elif self._gathered:
            self._gathered_before = 0
            self._loop.call_soon(self._begin)
        elif self._idle is not None:
            self._idle.set()


P = ParamSpec("P")
R = TypeVar("R")
Listener = Callable[[Sequence[object]], None]

_READER_THREADS = 2


class ChangedBeside:
    """A notice that a command beside the box has committed: what, only the rows know."""


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
        self._loop = asyncio.get_running_loop()
        self._shut = False
        self._full = False
        self._first: frozenset[Callable[..., Any]] = frozenset()
        self._listeners: list[Listener] = []
        self._writer_connection = open_connection(path)
        self._beside = FilesBeside(path)
        self._writer = Writer(
            self._writer_connection,
            lambda: Transaction(self._writer_connection, clock, zones, tokens),
            self._tell,
            on_broken or (lambda _: None),
            Watermark(self._writer_connection, self._beside).rise,
        )
        self._folder = Checkpointer(
            path, self._writer_connection, self._writer.run_between, self._writer.fail
        )
        self._peeker = Reader(open_connection(path, writable=False), clock, zones)
        self._readers: queue.SimpleQueue[Reader] = queue.SimpleQueue()
        for _ in range(_READER_THREADS):
            self._readers.put(Reader(open_connection(path, writable=False), clock, zones))
        self._pool = ThreadPoolExecutor(_READER_THREADS, thread_name_prefix="reader")

    @property
    def commits(self) -> int:
        """How many commits went to the disk."""
        return self._writer.commits

    @property
    def waiting(self) -> int:
        """How many actions wait for their commit."""
        return self._writer.waiting

    @property
    def is_full(self) -> bool:
        """Whether the disk is full, and only what goes first is taken."""
        return self._full

    def go_first(
        self, actions: frozenset[Callable[..., Any]], make_room: Callable[[], bool]
    ) -> None:
        """When the disk is full, `make_room` once, and then take nothing but `actions`."""

        def on_full() -> None:
            self._full = self._full or make_room()

        self._first = actions
        self._writer.on_full = on_full

    def set_full(self, *, full: bool) -> None:
        """The disk of all the box's files is full, or has room again."""
        self._full = full

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
        if self._full and action not in self._first:
            raise Unavailable
        result: R
        try:
            result = await self._writer.submit(action, args, kwargs)
        except Unavailable:
            if not (self._full and action in self._first):
                raise
            result = await self._writer.submit(action, args, kwargs)  # there is room now
        return result

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

    async def wipe(self) -> bool:
        """As `wiping.wipe`, beside the work. A disk that keeps nothing ends the service."""
        return await self._beside_the_work(wipe)

    async def cut_log(self) -> bool:
        """As `wiping.cut_log`, likewise."""
        return await self._beside_the_work(cut_log)

    async def _beside_the_work(self, work: Callable[[Path], bool]) -> bool:
        try:
            return await asyncio.to_thread(work, self.path)
        except apsw.IOError as failure:
            if is_lost(failure):
                self._writer.fail(failure)
            raise

    async def close(self) -> None:
        """Finish what waits, fold the WAL into the file and close every connection."""
        if self._shut:
            return
        self._shut = True
        await self._writer.close()
        await self._loop.run_in_executor(None, self._folder.join)
        await self._loop.run_in_executor(None, self._pool.shutdown)
        self._peeker.connection.close()
        while not self._readers.empty():
            self._readers.get().connection.close()
        self._writer_connection.close()
        self._beside.close()
        self._beside.tidy()

    def recheck_authorisation(self) -> None:
        """Tell the listeners that another process has committed something."""
        self._tell([ChangedBeside()])

    def _tell(self, notices: Sequence[object]) -> None:
        for listener in self._listeners:
            try:
                listener(notices)
            except Exception as error:  # noqa: BLE001 - the others are to hear of it all the same
                log_exception("hearing of a commit", error)

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
        with _refusing_trouble():
            reader.connection.execute("BEGIN")
            try:
                return query(reader, *args, **kwargs)
            finally:
                if reader.connection.in_transaction:  # else SQLite has ended it, for its trouble
                    reader.connection.execute("ROLLBACK")


class _refusing_trouble:  # noqa: N801 - reads as the function it is used like
    """Answers a disk that cannot be read with Unavailable."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, (apsw.BusyError, apsw.IOError, apsw.CantOpenError)):
            log.warning("a read failed: %s", error)
            raise Unavailable from error
