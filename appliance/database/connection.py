"""Database connections, transactions, readers, and messages for SQLite errors."""

import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import apsw

from appliance.clock import Clock, ZoneDatabase
from appliance.core.errors import NotFound, OperatorError
from appliance.core.tokens import Tokens

# The minimum free space that SQLite needs to create its -wal and -shm files.
_MIN_FREE_BYTES = 256 * 1024
# SQLite reports these errors if the WAL's shared-memory file (-shm) cannot be created.
_SHM_ERRORS = {apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP}

UNUSABLE = (
    apsw.BusyError, apsw.CantOpenError, apsw.CorruptError, apsw.FullError, apsw.IOError,
    apsw.NotADBError, apsw.ReadOnlyError,
)  # fmt: skip
DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError)


def is_unopenable(error: BaseException) -> bool:
    """Whether `error` shows that the file could not be opened or written, or that the disk is full.

    In that case, the file itself may be intact.
    """
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", 0) in _SHM_ERRORS
    return isinstance(error, (apsw.CantOpenError, apsw.FullError, apsw.ReadOnlyError))


def describe_unopenable(path: Path) -> str:
    """Describe why `path` cannot be opened, and what to do.

    In a full or read-only folder, SQLite cannot even read the file, because it must create its
    -shm file there.
    """
    if not path.exists():
        return describe_missing(path)
    if shutil.disk_usage(path.parent).free < _MIN_FREE_BYTES:
        return (
            f"{path.name} cannot be opened: {path.parent} has no free space. Nothing is "
            "damaged. Free some space, then try again."
        )
    return (
        f"{path.name} cannot be opened: {path.parent} is not writable. "
        "Check the disk and the owner of the files, then try again."
    )


def describe_missing(path: Path) -> str:
    """Describe a missing database file and how to restore it."""
    return (
        f"{path.name} is missing from {path.parent}. Restore the last good backup with "
        f"venuebox restore --latest --data {path.parent}"
    )


def describe_newer(path: Path, found: int, known: int) -> str:
    """Describe a database whose schema is too new for this program, and what to do."""
    return (
        f"{path.name} was written by a newer venuebox (schema {found}, but this version "
        f"supports {known}). Nothing was changed. Reinstall the newer version."
    )


def describe_unusable(path: Path, error: apsw.Error) -> str:
    """Describe why a command could not read or write `path`, and what to do."""
    if isinstance(error, apsw.BusyError):
        return f"{path.name} is locked by another process. Nothing was changed. Try again."
    if isinstance(error, apsw.FullError):
        return f"{path.parent} is full. Nothing was changed. Free some space, then try again."
    if is_unopenable(error):
        return describe_unopenable(path)
    return f"{path.name} cannot be used ({error}). Nothing was changed. Run venuebox doctor."


BUSY_SECONDS = 5.0
_RETRY_SECONDS = 0.002


def wait_for_others(connection: apsw.Connection) -> None:
    """Make the connection wait up to 5 s for other processes to commit before it raises BusyError.

    The busy handler retries every 2 ms. SQLite's own busy timeout sleeps up to 0.1 s between
    tries, so it may never find a gap between the commits of a busy process.
    """
    until = 0.0

    def retry(before: int) -> bool:
        nonlocal until
        now = time.monotonic()
        if before == 0:
            until = now + BUSY_SECONDS
        if now >= until:
            return False
        time.sleep(_RETRY_SECONDS)
        return True

    connection.set_busy_handler(retry)


Row = tuple[Any, ...]
T = TypeVar("T")
_CACHE, _READER_CACHE = -32_000, -8_000  # size per connection; SQLite reads a negative size as KiB
OLDEST_SQLITE = (3, 51, 3)  # older versions can corrupt a WAL file when they reset it
_NOTHING: Mapping[str, Any] = {}
KEPT_TABLES = ("venue", "venue_table", "slot", "closing_day", "endpoint")
_CHANGE_OF_KEPT = re.compile(rf"\b(?:INTO|UPDATE|FROM)\s+({'|'.join(KEPT_TABLES)})\b")


def check_engine() -> None:
    """Raise OperatorError if SQLite is older than OLDEST_SQLITE and could corrupt a WAL file."""
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < OLDEST_SQLITE:
        raise OperatorError(
            f"SQLite {version} may corrupt data. Upgrade apsw to get SQLite 3.51.3 or newer."
        )


def open_connection(path: Path, *, writable: bool = True) -> apsw.Connection:
    """Open a connection and set the box's pragmas and busy handler. The file must exist."""
    flags = apsw.SQLITE_OPEN_READWRITE if writable else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(str(path), flags=flags, statementcachesize=200)
    configure(connection)
    if not writable:
        connection.execute(f"PRAGMA cache_size = {_READER_CACHE}")
    return connection


def open_for_command(path: Path) -> apsw.Connection:
    """Open a read-only connection for a command. The box may be running.

    Raises OperatorError if the database cannot be opened.
    """
    try:
        return open_connection(path, writable=False)
    except (apsw.CantOpenError, apsw.FullError, apsw.IOError) as error:
        if is_unopenable(error):
            raise OperatorError(describe_unopenable(path)) from None
        raise


def configure(connection: apsw.Connection) -> None:
    """Set the box's pragmas and busy handler on a connection."""
    wait_for_others(connection)
    # Enable the query planner stability guarantee. Without it, SQLite prepares a statement again
    # whenever the bound values could change its plan. Preparing takes 30 µs per join.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    for pragma in (
        "synchronous = FULL",
        "foreign_keys = ON",
        "secure_delete = ON",
        "trusted_schema = OFF",
        "temp_store = MEMORY",
        f"cache_size = {_CACHE}",
        "journal_size_limit = 33554432",
        "wal_autocheckpoint = 8000",  # 8 MB; with less, pages are copied more often
    ):
        connection.execute(f"PRAGMA {pragma}")


def known(found: T | None) -> T:
    """Return `found`, the result of a query. Raises NotFound if it is None."""
    if found is None:
        raise NotFound
    return found


@cache
def _insert_statement(table: str, columns: tuple[str, ...]) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    places = ", ".join("?" * len(columns))  # binding by position is faster than by name
    return f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608


@lru_cache(maxsize=512)
def _changed_tables(sql: str) -> list[str]:
    """Return those of KEPT_TABLES that the statement, which is not a SELECT, may change."""
    return _CHANGE_OF_KEPT.findall(sql)


class Reader:
    """Gives a query access to the clock, the time zones, and a snapshot of the committed data."""

    __slots__ = ("_clock", "_kept", "connection", "zones")

    def __init__(
        self, connection: apsw.Connection, clock: Clock, zones: ZoneDatabase,
        kept: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.connection = connection
        self._kept = kept
        self.zones = zones
        self._clock = clock

    @property
    def now(self) -> int:
        """The current time, in ms since 1970."""
        return self._clock.now()

    def rows(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> Iterator[Row]:
        """Run a query with named parameters and return its rows."""
        return self.connection.execute(sql, parameters)

    def row(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> Row | None:
        """Return the first row of a query, or None if there is no row."""
        return next(self.rows(sql, parameters), None)

    def value(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> Any:
        """Return the first column of the first row, or None if there is no row."""
        found = self.row(sql, parameters)
        return None if found is None else found[0]

    def keep(self, table: str, load: Callable[["Reader"], T]) -> T:
        """Return `load(reader)`, which the writing connection keeps until the table changes.

        `load` must read nothing but `table`, which must be one of KEPT_TABLES and kept in one form.
        Its result must not be changed.
        """
        if self._kept is None:
            return load(self)
        if table not in self._kept:
            self._kept[table] = load(self)
        value: T = self._kept[table]
        return value

    def one(
        self, kind: Callable[..., T], sql: str, parameters: Mapping[str, Any] = _NOTHING
    ) -> T | None:
        """Return `kind(*columns)` for the first row, or None if there is no row."""
        for found in self.rows(sql, parameters):
            return kind(*found)
        return None


class Transaction(Reader):
    """Gives an action read and write access to the database, and a source of random tokens.

    After the commit, `notices` are passed to the database's listeners.
    """

    __slots__ = ("_has_savepoint", "_now", "_wants_savepoint", "notices", "tokens")

    def __init__(
        self, connection: apsw.Connection, clock: Clock, zones: ZoneDatabase, tokens: Tokens
    ) -> None:
        super().__init__(connection, clock, zones)
        self._wants_savepoint = self._has_savepoint = False
        self._now = clock.now()
        self.tokens = tokens
        self.notices: list[object] = []

    @property
    def now(self) -> int:
        """The time at which the transaction started, in ms since 1970."""
        return self._now

    def execute(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> int:
        """Run a statement. Returns the number of rows it changed."""
        self._before(sql)
        self.connection.execute(sql, parameters)
        return self.connection.changes()

    def execute_each(self, sql: str, rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> None:
        """Run a statement once for each row of parameters, which may be named or positional."""
        self._before(sql)
        self.connection.executemany(sql, rows)

    def rows(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> Iterator[Row]:
        """Return the rows of a query, or of a statement with RETURNING."""
        if not sql.lstrip().startswith("SELECT"):
            self._before(sql)
        return self.connection.execute(sql, parameters)

    def insert(self, table: str, values: Mapping[str, Any]) -> int:
        """Insert one row and return its rowid.

        Column names become part of the SQL, so they must never come from user input.
        """
        sql = _insert_statement(table, tuple(values))
        self._before(sql)
        self.connection.execute(sql, tuple(values.values()))
        return self.connection.last_insert_rowid()

    def update(self, table: str, id_: str, **values: Any) -> None:
        """Update columns of the row `id_`. Column names must never come from user input."""
        changes = ", ".join(f'"{name}" = :{name}' for name in values)
        sql = f"UPDATE {table} SET {changes} WHERE id = :id_"  # noqa: S608
        self.execute(sql, {**values, "id_": id_})

    def join(self, kept: dict[str, Any], *, is_alone: bool) -> None:
        """Take part in the writer's batch, with the values that it keeps from batch to batch.

        If it is not alone, `undo` rolls back this action alone. For this, a SAVEPOINT is opened
        before the first change; a read-only action needs none.
        """
        self._kept, self._wants_savepoint = kept, not is_alone

    def undo(self) -> None:
        """Roll back all changes that this action made, if it shares the transaction."""
        if self._has_savepoint:
            self.connection.execute("ROLLBACK TO action")
            self.connection.execute("RELEASE action")

    def release(self) -> None:
        """Release the SAVEPOINT so that the next COMMIT includes the changes."""
        if self._has_savepoint:
            self.connection.execute("RELEASE action")

    def new_id(self) -> str:
        """Return a new UUID for a row that this transaction inserts."""
        return self.tokens.new_id(self._now)

    def _before(self, sql: str) -> None:
        """Prepare for a statement that changes something."""
        if self._wants_savepoint:
            self.connection.execute("SAVEPOINT action")
            self._wants_savepoint, self._has_savepoint = False, True
        if self._kept:
            for table in _changed_tables(sql):
                self._kept.pop(table, None)
