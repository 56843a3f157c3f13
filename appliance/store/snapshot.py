"""A whole, consistent copy of a database, and questions that prove a copy good."""

from contextlib import closing
from pathlib import Path

import apsw

from appliance.errors import Trouble
from appliance.store.connection import open_connection, open_for_command
from appliance.store.copying import write_copy
from appliance.store.unusable import describe_unopenable, is_unopenable

DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError)


def copy_database(path: Path, copy: Path) -> None:
    """Write `copy` as the database is now; who writes to it meanwhile is not held up.

    Trouble when a page of it is damaged: such a copy would be none. OSError when there is no
    room.
    """
    try:
        with closing(open_for_command(path)) as connection:
            write_copy(connection, copy)
    except apsw.FullError as error:
        raise OSError(f"no room for a copy of {path.name}") from error
    except DAMAGE as error:
        if is_unopenable(error):
            raise Trouble(describe_unopenable(path)) from None
        raise Trouble(f"{path.name} is damaged ({error}): run venuebox doctor") from None


def count_rows(path: Path) -> dict[str, int]:
    """How many rows each table has."""
    sql = """SELECT name FROM sqlite_schema
             WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"""
    with _opened(path) as connection:
        tables = [str(row[0]) for row in connection.execute(sql)]
        counts = (connection.execute(f'SELECT count(*) FROM "{name}"') for name in tables)  # noqa: S608 - of our own schema
        return {name: int(next(found)[0]) for name, found in zip(tables, counts, strict=True)}


def list_faults(path: Path) -> list[str]:
    """What is wrong with a database file: nothing in a sound one.

    Every page is read, and with that its checksum; indexes are compared with tables, and rows
    with those that they belong to.
    """
    try:
        with _opened(path) as connection:
            return find_faults(connection, "integrity_check(5)")
    except (*DAMAGE, apsw.CantOpenError) as error:
        return [str(error)]


def describe_venue(path: Path) -> tuple[str, str, str]:
    """Name, slug and id of the venue in this file, of whatever schema."""
    with _opened(path) as connection:
        row = next(connection.execute("SELECT name, slug, id FROM venue"), None)
    # None: it was never furnished.
    return ("venuebox", "venuebox", "") if row is None else (row[0], row[1], row[2])


def make_live(path: Path) -> None:
    """Let a copy be served from now on: with a write-ahead log, as every live file."""
    with closing(open_connection(path)) as connection:
        connection.pragma("journal_mode", "wal")
    path.chmod(0o600)


def read_schema_number(path: Path) -> int:
    """The number of the file's schema."""
    with _opened(path) as connection:
        return int(connection.pragma("user_version"))


def find_faults(connection: apsw.Connection, check: str) -> list[str]:
    """What `check`, a PRAGMA of SQLite, finds, and which tables have rows that lack another."""
    found = [str(row[0]) for row in connection.execute(f"PRAGMA {check}")]
    orphans = {str(row[0]) for row in connection.execute("PRAGMA foreign_key_check")}
    damage = [] if found == ["ok"] else found
    return damage + [f"rows of {table} that belong to nothing" for table in sorted(orphans)]


def _opened(path: Path) -> closing[apsw.Connection]:
    return closing(open_connection(path, writable=False))
