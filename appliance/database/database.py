"""One SQLite database: reader threads, the single writer, and who hears of its commits."""

import asyncio
import logging
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from appliance.clock import Clock, ZoneDatabase
from appliance.core.errors import Unavailable, log_exception
from appliance.core.tokens import Tokens
from appliance.database import vacuum
from appliance.database.connection import (
    Reader,
    Transaction,
    open_connection,
)
from appliance.database.writer import Writer

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
Listener = Callable[[Sequence[object]], None]
_UNREADABLE = (apsw.BusyError, apsw.IOError, apsw.CantOpenError)
_READER_THREADS = 2


class ChangedBeside:
    """The notice that another process has committed. It does not say which rows changed."""


class Database:
    """The open database of one environment. Open and use it in the same event loop."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        tokens: Tokens,
        zones: ZoneDatabase,
        on_broken: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Open `path`, which must be a migrated box database (see `migrate`).

        `on_broken` is called once, in the loop, if the disk fails. Later writes raise Unavailable.
        The caller should end the process, because a failed fsync must not be retried.
        """
        self.path = path
        self.clock = clock
        self.tokens = tokens
        self.zones = zones
        self._loop = asyncio.get_running_loop()
        self._shut = False
        self.is_full = False  # if True, `write` accepts only the actions passed to `go_first`
        self._allowed_when_full: frozenset[Callable[..., Any]] = frozenset()
        self._listeners: dict[type, list[Listener]] = {}
        self._writer_connection = open_connection(path)
        self._writer = Writer(
            self._writer_connection,
            lambda: Transaction(self._writer_connection, clock, zones, tokens),
            self._notify,
            on_broken or (lambda _: None),
        )
        self._peeker = Reader(open_connection(path, writable=False), clock, zones)
        self._idle_writer = Reader(self._writer_connection, clock, zones)
        self._keeper = Reader(self._writer_connection, clock, zones, self._writer.kept)
        self._readers: queue.SimpleQueue[Reader] = queue.SimpleQueue()
        for _ in range(_READER_THREADS):
            self._readers.put(Reader(open_connection(path, writable=False), clock, zones))
        self._pool = ThreadPoolExecutor(_READER_THREADS, thread_name_prefix="reader")

    @property
    def commits(self) -> int:
        """The number of commits written to the disk."""
        return self._writer.commits

    @property
    def waiting(self) -> int:
        """The number of actions that are not yet committed."""
        return self._writer.waiting

    def go_first(
        self, actions: frozenset[Callable[..., Any]], make_room: Callable[[], bool]
    ) -> None:
        """Register `make_room`, which is called when the disk is full.

        If it returns True because it has freed space, `write` accepts only `actions` from then on.
        """

        def on_full() -> None:
            self.is_full = self.is_full or make_room()

        self._allowed_when_full = actions
        self._writer.on_full = on_full

    def on_commit(self, listener: Listener, *kinds: type) -> None:
        """Call `listener` in the loop after each commit that has change notices of these types.

        The listener gets only the notices of these types. Without `kinds`, it gets all notices of
        every commit.
        """
        for kind in kinds or (object,):
            self._listeners.setdefault(kind, []).append(listener)

    async def write(
        self, action: Callable[Concatenate[Transaction, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run `action(tx, …)` in a transaction, and return its result once its changes are durable.

        If the action raises an exception, its changes are rolled back and the caller gets the
        exception. Raises Unavailable if the queue is full, the disk is full, the file is locked or
        the box is stopping.
        """
        if self.is_full and action not in self._allowed_when_full:
            raise Unavailable
        try:
            return await self._writer.submit(action, args, kwargs)
        except Unavailable:
            if not (self.is_full and action in self._allowed_when_full):
                raise
            return await self._writer.submit(action, args, kwargs)  # retry, because space was freed

    async def read(
        self, query: Callable[Concatenate[Reader, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run `query(reader, …)` on a reader thread, in one snapshot.

        Raises Unavailable if the database cannot be read or is closed.
        """
        if self._shut:
            raise Unavailable
        return await self._loop.run_in_executor(
            self._pool, self._read_in_thread, query, args, kwargs
        )

    def peek(
        self, query: Callable[Concatenate[Reader, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run `query(reader, …)` on the event loop.

        Use it for lookups of a few indexed rows, which take less time than a thread switch. Uses
        the writing connection when that connection is idle, because the cache of a connection
        survives its own commits. Raises Unavailable if the database cannot be read or is closed.
        """
        if not self._writer.is_idle or self._shut:
            return self._snapshot(self._idle_reader(), query, args, kwargs)

        def look(reader: Reader) -> R:
            self._writer.forget_stale()
            return query(reader, *args, **kwargs)

        return self._snapshot(self._keeper, look, (), {})

    def look_up(
        self, query: Callable[Concatenate[Reader, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run `query(reader, …)` as `peek` does, but without a transaction around it.

        Use it for a query that is one statement. Between two statements, another process might
        commit.
        """
        try:
            return query(self._idle_reader(), *args, **kwargs)
        except _UNREADABLE as error:
            raise _unreadable(error) from error

    def _idle_reader(self) -> Reader:
        if self._shut:
            raise Unavailable
        return self._idle_writer if self._writer.is_idle else self._peeker

    async def wipe(self) -> bool:
        """Run `vacuum.wipe` in a thread. If the disk fails, stop accepting writes."""
        return await self._run_in_thread(vacuum.wipe)

    async def cut_log(self) -> bool:
        """Run `vacuum.cut_log` in a thread. If the disk fails, stop accepting writes."""
        return await self._run_in_thread(vacuum.cut_log)

    async def _run_in_thread(self, work: Callable[[Path], bool]) -> bool:
        try:
            return await asyncio.to_thread(work, self.path)
        except apsw.IOError as error:
            if vacuum.is_lost(error):
                self._writer.fail(error)
            raise

    async def close(self) -> None:
        """Finish queued actions and close all connections; the last one checkpoints the WAL."""
        if self._shut:
            return
        self._shut = True
        await self._writer.close()
        await self._loop.run_in_executor(None, self._pool.shutdown)
        self._peeker.connection.close()
        while not self._readers.empty():
            self._readers.get().connection.close()
        self._writer_connection.close()

    def look_for_changes(self) -> None:
        """Notify the listeners that another process has committed."""
        self._notify([ChangedBeside()])

    def _notify(self, notices: Sequence[object]) -> None:
        wanted: dict[Listener, list[object]] = {}
        for notice in notices:
            for kind in (type(notice), object):
                for listener in self._listeners.get(kind, ()):
                    wanted.setdefault(listener, []).append(notice)
        for listener, its_notices in wanted.items():
            try:
                listener(its_notices)
            except Exception as error:  # noqa: BLE001 - the other listeners must be called too
                log_exception("database: commit listener", error)

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
                if reader.connection.in_transaction:  # or an error rolled it back
                    reader.connection.execute("ROLLBACK")
        except _UNREADABLE as error:
            raise _unreadable(error) from error


def _unreadable(error: apsw.Error) -> Unavailable:
    log.warning("database: read failed: %s", error)
    return Unavailable()
