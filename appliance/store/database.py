"""One SQLite file: its one writer, its readers, and the promise that what was answered stays."""

import asyncio
import logging
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from appliance.accidents import log_accident
from appliance.clock import Clock, ZoneDatabase
from appliance.errors import Unavailable
from appliance.store.connection import Reader, Transaction, open_connection
from appliance.store.folding import Folder
from appliance.store.watermark import FilesBeside, Watermark
from appliance.store.wiping import cut_log, is_lost, wipe
from appliance.store.writer import Writer
from appliance.tokens import Tokens

log = logging.getLogger(__name__)
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
        self._folder = Folder(
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

    def look_again(self) -> None:
        """Tell the listeners that another process has committed something."""
        self._tell([ChangedBeside()])

    def _tell(self, notices: Sequence[object]) -> None:
        for listener in self._listeners:
            try:
                listener(notices)
            except Exception as error:  # noqa: BLE001 - the others are to hear of it all the same
                log_accident("hearing of a commit", error)

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
