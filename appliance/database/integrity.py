"""Integrity checks, and transactions for commands."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from appliance.clock import Clock, ZoneDatabase
from appliance.core.errors import OperatorError
from appliance.core.tokens import Tokens
from appliance.database.connection import (
    DAMAGE,
    UNUSABLE,
    Transaction,
    describe_unopenable,
    describe_unusable,
    is_unopenable,
    open_connection,
)


def count_rows(path: Path) -> dict[str, int]:
    """Return the number of rows in each table, by table name."""
    sql = """SELECT name FROM sqlite_schema
             WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"""
    with _opened(path) as connection:
        return {
            str(name): next(connection.execute(f'SELECT count(*) FROM "{name}"'))[0]  # noqa: S608
            for (name,) in connection.execute(sql).fetchall()
        }


def list_faults(path: Path) -> list[str]:
    """Return up to five faults in a database file, or an empty list if it is intact.

    Reads every page, and checks foreign keys and indexes.
    """
    try:
        with _opened(path) as connection:
            return find_faults(connection, "integrity_check(5)")
    except (*DAMAGE, apsw.CantOpenError) as error:
        return [str(error)]


def describe_venue(path: Path) -> tuple[str, str, str]:
    """Return the venue's (name, slug, id) from a database file of any schema version."""
    with _opened(path) as connection:
        row: Any = next(connection.execute("SELECT name, slug, id FROM venue"), None)
    return row or ("venuebox", "venuebox", "")  # there is no venue yet


def make_live(path: Path) -> None:
    """Prepare a copied file for use by the box: set WAL mode and file mode 0600."""
    with closing(open_connection(path)) as connection:
        connection.pragma("journal_mode", "wal")
    path.chmod(0o600)


def read_schema_number(path: Path) -> int:
    """Return the schema number stored in the database file."""
    with _opened(path) as connection:
        return int(connection.pragma("user_version"))


def find_faults(connection: apsw.Connection, check: str) -> list[str]:
    """Run the SQLite pragma `check`, then check foreign keys. Returns the faults found."""
    found = [str(row[0]) for row in connection.execute(f"PRAGMA {check}")]
    orphans = {str(row[0]) for row in connection.execute("PRAGMA foreign_key_check")}
    damage = [] if found == ["ok"] else found
    return damage + [f"{table} has rows that refer to missing rows" for table in sorted(orphans)]


def _opened(path: Path) -> closing[apsw.Connection]:
    return closing(open_connection(path, writable=False))


_CHECK_SECONDS = 2.0  # too short for a very large file, but the nightly check reads every page
_STEPS = 10_000  # SQLite virtual machine instructions between two time checks


def check_before_serving(path: Path) -> None:
    """Check the file's structure, for about two seconds at most, and empty its write-ahead log.

    Ignores a missing file, which `migrate` reports. Raises OperatorError if the file is damaged or
    cannot be opened or written.
    """
    if not path.exists():
        return
    try:
        with closing(open_connection(path)) as connection:
            fault = _find_fault(connection, time.monotonic() + _CHECK_SECONDS)
            if not fault:
                empty_log(connection)
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.FullError, *DAMAGE) as error:
        if is_unopenable(error):
            raise OperatorError(describe_unopenable(path)) from None
        fault = str(error)
    if fault:
        raise OperatorError(describe_damage(path, " ".join(fault.split())))


def empty_log(connection: apsw.Connection) -> None:
    """Move the write-ahead log into the database file, before anything is added to the log.

    After a failed fsync, the kernel may still show a part of the log that the disk has lost. SQLite
    does not sync the truncation of the log, so a power cut could bring the log back without that
    part, and older pages with it. The commit at the end makes the truncation durable.
    """
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    number = connection.pragma("user_version")
    connection.execute(f"PRAGMA user_version = {number}")


def describe_damage(path: Path, fault: str) -> str:
    """Return a message that describes the damage to the database and says how to restore it."""
    return (
        f"{path.name} is damaged ({fault}), so the box cannot use it. Restore the last good backup "
        f"with venuebox restore --latest --data {path.parent}. The restore keeps the damaged files."
    )


def _find_fault(connection: apsw.Connection, until: float) -> str:
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        found = next(connection.execute("PRAGMA quick_check(1)"))[0]
    except apsw.InterruptError:
        found = "ok"
    finally:
        connection.set_progress_handler(None)
    return "" if found == "ok" else str(found)


@contextmanager
def session(path: Path, clock: Clock, tokens: Tokens, zones: ZoneDatabase) -> Iterator[Transaction]:
    """Run the block in a transaction on the database `path`, and commit it durably at the end.

    Any exception rolls the transaction back. Waits up to 5 s for another process to commit. The
    transaction's change notices are discarded, so call `wake_box` afterwards to make a running box
    read the changed rows. Raises OperatorError if the file cannot be used.
    """
    try:
        connection = open_connection(path)
    except UNUSABLE as error:
        raise OperatorError(describe_unusable(path, error)) from None
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield Transaction(connection, clock, zones, tokens)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    except UNUSABLE as error:
        raise OperatorError(describe_unusable(path, error)) from None
    finally:
        connection.close()
