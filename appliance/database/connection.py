"""Connections to a box database: transactions, readers, and what each SQLite error means."""

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import apsw
import apsw.sqlite_extra

from appliance.clock import Clock, ZoneDatabase
from appliance.core.errors import NotFound, OperatorError
from appliance.core.tokens import Tokens

_ROOM = 256 * 1024  # what SQLite needs beside a database, and some
# The small file beside a database by which its users know of each other cannot be made.
_BESIDE = {apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP}

UNUSABLE = (
    apsw.BusyError, apsw.CantOpenError, apsw.CorruptError, apsw.FullError, apsw.IOError,
    apsw.NotADBError, apsw.ReadOnlyError,
)  # fmt: skip


@contextmanager
def quota_as_full(connection: apsw.Connection) -> Iterator[None]:
    """FullError where a quota is used up: SQLite calls that a failed write, as of a broken disk."""
    try:
        yield
    except apsw.IOError as error:
        if is_over_quota(error, connection):
            raise apsw.FullError("disk quota exceeded") from error
        raise


def is_over_quota(error: BaseException, connection: apsw.Connection) -> bool:
    """Whether `error`, the latest of that connection, is a write for which a quota had no room."""
    is_write = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_WRITE
    return is_write and connection.system_errno == errno.EDQUOT


def is_unopenable(error: BaseException) -> bool:
    """Whether what failed is the opening, or the room for it: the file itself may be sound."""
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", 0) in _BESIDE
    return isinstance(error, (apsw.CantOpenError, apsw.FullError, apsw.ReadOnlyError))


def describe_unopenable(path: Path) -> str:
    """Why `path` could not be opened, and what to do. SQLite writes beside it even to read."""
    if not path.exists():
        return describe_missing(path)
    if is_full(path.parent):
        return (
            f"{path.name} cannot be opened, for {path.parent} has no room left: make some, then "
            "try again. Nothing is damaged"
        )
    return (
        f"{path.name} cannot be opened, for nothing can be written in {path.parent}: "
        "check the disk and whom the files belong to, then try again"
    )


def describe_missing(path: Path) -> str:
    """What to do where no database is and one was."""
    return (
        f"{path.name} is missing from {path.parent}: put the last good backup in place with "
        f"venuebox restore --latest --data {path.parent}"
    )


def describe_newer(path: Path, found: int, known: int) -> str:
    """What to do for whoever has gone back to an older program."""
    return (
        f"{path.name} was written by a newer venuebox (schema {found}, this one knows {known}): "
        "install that version again; nothing was changed"
    )


def describe_unusable(path: Path, error: apsw.Error) -> str:
    """Why a command could not read or write `path`."""
    if isinstance(error, apsw.BusyError):
        return f"{path.name} was in use all the time: nothing was changed, try again"
    if isinstance(error, apsw.FullError):
        return f"{path.parent} has no room left: nothing was changed, make some and try again"
    if is_unopenable(error):
        return describe_unopenable(path)
    return f"{path.name} cannot be used ({error}): nothing was changed, run venuebox doctor"


def is_full(folder: Path) -> bool:
    """Whether its volume has hardly any room left."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize < _ROOM


BUSY_SECONDS = 5.0
_AGAIN_SECONDS = 0.002


def wait_for_others(connection: apsw.Connection) -> None:
    """From now on it waits 5 s at most for another process's commit; then apsw.BusyError.

    SQLite's own waiting sleeps ever longer, up to 0.1 s: beside a process that writes without a
    pause it finds the moment between two commits after seconds, or never.
    """
    until = 0.0

    def recheck_authorisation(before: int) -> bool:
        nonlocal until
        now = time.monotonic()
        if before == 0:
            until = now + BUSY_SECONDS
        if now >= until:
            return False
        time.sleep(_AGAIN_SECONDS)
        return True

    connection.set_busy_handler(recheck_authorisation)


Row = tuple[Any, ...]
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_CACHE, _READER_CACHE = -32_000, -8_000  # KiB; several read beside the one who writes
_CHECKSUM_BYTES = 8  # at the end of each page; see check_pages
OLDEST_SQLITE = (3, 51, 3)  # older ones can corrupt a WAL file when it is reset
_NOTHING: Mapping[str, Any] = {}


def check_engine(version: str | None = None) -> None:
    """Refuse an SQLite that is too old to be trusted with a WAL; OperatorError says so."""
    found = version or apsw.sqlite_lib_version()
    if tuple(int(part) for part in found.split(".")[:3]) < OLDEST_SQLITE:
        raise OperatorError(
            f"SQLite {found} may corrupt data: 3.51.3 or newer is needed (upgrade apsw)"
        )


@cache
def check_pages() -> None:
    """From now on, SQLite gives each page a checksum and refuses to read one that does not fit.

    Its own checks look at the structure alone: of single bytes that change by themselves they
    find one in ten, with the checksums all (tests/faults/test_corruption.py). For the process.
    """
    connection = apsw.Connection(":memory:")
    try:
        apsw.sqlite_extra.load(connection, "cksumvfs")
    except (apsw.Error, apsw.sqlite_extra.NotAvailable, OSError) as error:
        raise OperatorError(
            f"SQLite's page checksums are missing ({error}): install anew"
        ) from None
    finally:
        connection.close()


def lay_out_pages(connection: apsw.Connection, size: int) -> None:
    """Give a new database pages of `size` bytes, each with room for its checksum."""
    connection.execute(f"PRAGMA page_size = {size}")
    connection.reserve_bytes("main", _CHECKSUM_BYTES)


def open_connection(path: Path, *, writable: bool = True) -> apsw.Connection:
    """A connection with the box's pragmas. The file must exist already."""
    check_pages()
    flags = apsw.SQLITE_OPEN_READWRITE if writable else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(str(path), flags=flags, statementcachesize=200)
    configure(connection)
    if not writable:
        connection.execute(f"PRAGMA cache_size = {_READER_CACHE}")
    return connection


def open_for_command(path: Path) -> apsw.Connection:
    """A connection that only reads, beside the box or without it. OperatorError when it cannot."""
    try:
        return open_connection(path, writable=False)
    except (apsw.CantOpenError, apsw.FullError, apsw.IOError) as error:
        if is_unopenable(error):
            raise OperatorError(describe_unopenable(path)) from None
        raise


def configure(connection: apsw.Connection) -> None:
    """Give a connection the box's pragmas."""
    wait_for_others(connection)
    # Plans that may depend on bound values are made anew at each run: 30 µs for every join.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    for pragma in (
        "synchronous = FULL",
        "foreign_keys = ON",
        "secure_delete = ON",
        "trusted_schema = OFF",
        "temp_store = MEMORY",
        f"cache_size = {_CACHE}",
        "journal_size_limit = 33554432",
        "wal_autocheckpoint = 1000",
    ):
        connection.execute(f"PRAGMA {pragma}")


def known(found: T | None) -> T:
    """What was looked up, or NotFound."""
    if found is None:
        raise NotFound
    return found


@cache
def _insert_statement(table: str, columns: tuple[str, ...]) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    places = ", ".join(f":{name}" for name in columns)
    return f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608


class Reader:
    """What a query is handed: a snapshot of committed state, the clock and the zones."""

    __slots__ = ("_clock", "connection", "zones")

    def __init__(self, connection: apsw.Connection, clock: Clock, zones: ZoneDatabase) -> None:
        self.connection = connection
        self.zones = zones
        self._clock = clock

    @property
    def now(self) -> int:
        """Milliseconds since 1970."""
        return self._clock.now()

    def rows(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> Iterator[Row]:
        """The rows of a query; parameters are named."""
        return self.connection.execute(sql, parameters)

    def row(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> Row | None:
        """The first row of a query, or None."""
        return next(self.rows(sql, parameters), None)

    def value(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> Any:
        """The first column of the first row, or None."""
        found = self.row(sql, parameters)
        return None if found is None else found[0]

    def one(
        self, kind: Callable[..., T], sql: str, parameters: Mapping[str, Any] = _NOTHING
    ) -> T | None:
        """What `kind` makes of the columns of the first row, or None."""
        found = self.row(sql, parameters)
        return None if found is None else kind(*found)


class Transaction(Reader):
    """What an action is handed: the connection, one reading of the clock, and randomness.

    `notices` are given to the database's listeners after the commit, never before. The first
    change opens a SAVEPOINT: an action that refuses before it has none to undo.
    """

    __slots__ = ("_has_savepoint", "_now", "notices", "tokens")

    def __init__(
        self, connection: apsw.Connection, clock: Clock, zones: ZoneDatabase, tokens: Tokens
    ) -> None:
        super().__init__(connection, clock, zones)
        self._has_savepoint = False
        self._now = clock.now()
        self.tokens = tokens
        self.notices: list[object] = []

    @property
    def now(self) -> int:
        """Milliseconds since 1970, read once."""
        return self._now

    def execute(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> int:
        """Run a statement; the number of rows it changed."""
        self._save()
        self.connection.execute(sql, parameters)
        return self.connection.changes()

    def execute_each(self, sql: str, rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> None:
        """Run a statement once for each of these rows of parameters, named or in their order."""
        self._save()
        self.connection.executemany(sql, rows)

    def rows(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> Iterator[Row]:
        """The rows of a query, or of a statement that returns what it changed."""
        if not sql.lstrip().startswith("SELECT"):
            self._save()
        return self.connection.execute(sql, parameters)

    def insert(self, table: str, values: Mapping[str, Any]) -> int:
        """Insert one row; its rowid. Column names come from the code, never from outside."""
        self._save()
        self.connection.execute(_insert_statement(table, tuple(values)), values)
        return self.connection.last_insert_rowid()

    def update(self, table: str, id_: str, **values: Any) -> None:
        """Change columns of the row of that id. Their names come from the code as well."""
        changes = ", ".join(f'"{name}" = :{name}' for name in values)
        sql = f"UPDATE {table} SET {changes} WHERE id = :id_"  # noqa: S608
        self.execute(sql, {**values, "id_": id_})

    def undo(self) -> None:
        """Take back every change of this action."""
        if self._has_savepoint:
            self.connection.execute("ROLLBACK TO action")
            self.connection.execute("RELEASE action")

    def keep(self) -> None:
        """End the action; its changes wait for the commit."""
        if self._has_savepoint:
            self.connection.execute("RELEASE action")

    def new_id(self) -> str:
        """A fresh UUID for a row of this transaction."""
        return self.tokens.new_id(self._now)

    def _save(self) -> None:
        """Open the SAVEPOINT before the first change."""
        if not self._has_savepoint:
            self.connection.execute("SAVEPOINT action")
            self._has_savepoint = True
