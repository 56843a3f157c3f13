"""Connections to a box database, and what an action or a query is handed."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import apsw

from appliance.clock import Clock, ZoneDatabase
from appliance.errors import Trouble
from appliance.tokens import Tokens

Row = tuple[Any, ...]
BUSY_MILLISECONDS = 5000
OLDEST_SQLITE = (3, 51, 3)  # older ones can corrupt a WAL file when it is reset
_NOTHING: Mapping[str, Any] = {}


def check_engine(version: str | None = None) -> None:
    """Refuse an SQLite that is too old to be trusted with a WAL; Trouble says so."""
    found = version or apsw.sqlite_lib_version()
    if tuple(int(part) for part in found.split(".")[:3]) < OLDEST_SQLITE:
        raise Trouble(f"SQLite {found} may corrupt data: 3.51.3 or newer is needed (upgrade apsw)")


def open_connection(path: Path, *, writable: bool = True) -> apsw.Connection:
    """A connection with the box's pragmas. The file must exist already."""
    flags = apsw.SQLITE_OPEN_READWRITE if writable else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(str(path), flags=flags, statementcachesize=200)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    # Plans that may depend on bound values are made anew at each run: 30 µs for every join.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    for pragma in (
        "synchronous = FULL",
        "foreign_keys = ON",
        "secure_delete = ON",
        "trusted_schema = OFF",
        "temp_store = MEMORY",
        "cache_size = -32000",
        "journal_size_limit = 33554432",
        "wal_autocheckpoint = 4000",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


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


class Transaction(Reader):
    """What an action is handed: the connection, one reading of the clock, and randomness.

    `notices` are given to the database's listeners after the commit, never before.
    """

    __slots__ = ("_now", "notices", "tokens")

    def __init__(
        self, connection: apsw.Connection, clock: Clock, zones: ZoneDatabase, tokens: Tokens
    ) -> None:
        super().__init__(connection, clock, zones)
        self._now = clock.now()
        self.tokens = tokens
        self.notices: list[object] = []

    @property
    def now(self) -> int:
        """Milliseconds since 1970, read once for the whole transaction."""
        return self._now

    def execute(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> int:
        """Run a statement; the number of rows it changed."""
        self.connection.execute(sql, parameters)
        return self.connection.changes()

    def insert(self, table: str, values: Mapping[str, Any]) -> int:
        """Insert one row; its rowid. Column names come from the code, never from outside."""
        columns = ", ".join(f'"{name}"' for name in values)
        places = ", ".join(f":{name}" for name in values)
        self.connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", values)  # noqa: S608
        return self.connection.last_insert_rowid()

    def new_id(self) -> str:
        """A fresh UUID for a row of this transaction."""
        return self.tokens.new_id(self._now)
