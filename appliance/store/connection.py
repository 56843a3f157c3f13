"""Connections to a box database, and what an action or a query is handed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import apsw
import apsw.sqlite_extra

from appliance.clock import Clock, ZoneDatabase
from appliance.errors import NotFound, Trouble
from appliance.store.unusable import describe_unopenable, is_unopenable
from appliance.store.waiting import wait_for_others
from appliance.tokens import Tokens

Row = tuple[Any, ...]
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_CACHE, _READER_CACHE = -32_000, -8_000  # KiB; several read beside the one who writes
_CHECKSUM_BYTES = 8  # at the end of each page; see check_pages
OLDEST_SQLITE = (3, 51, 3)  # older ones can corrupt a WAL file when it is reset
_NOTHING: Mapping[str, Any] = {}


def check_engine(version: str | None = None) -> None:
    """Refuse an SQLite that is too old to be trusted with a WAL; Trouble says so."""
    found = version or apsw.sqlite_lib_version()
    if tuple(int(part) for part in found.split(".")[:3]) < OLDEST_SQLITE:
        raise Trouble(f"SQLite {found} may corrupt data: 3.51.3 or newer is needed (upgrade apsw)")


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
        raise Trouble(f"SQLite's page checksums are missing ({error}): install anew") from None
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
    """A connection that only reads, beside the box or without it. Trouble when it cannot."""
    try:
        return open_connection(path, writable=False)
    except (apsw.CantOpenError, apsw.FullError, apsw.IOError) as error:
        if is_unopenable(error):
            raise Trouble(describe_unopenable(path)) from None
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
