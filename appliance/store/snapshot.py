"""A whole, consistent copy of a database, and questions that prove a copy good."""

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
        connection = open_for_command(path)
        try:
            write_copy(connection, copy)
        finally:
            connection.close()
    except apsw.FullError as error:
        raise OSError(f"no room for a copy of {path.name}") from error
    except DAMAGE as error:
        if is_unopenable(error):
            raise Trouble(describe_unopenable(path)) from None
        raise Trouble(f"{path.name} is damaged ({error}): run venuebox doctor") from None


def count_rows(path: Path) -> dict[str, int]:
    """How many rows each table has."""
    connection = open_connection(path, writable=False)
    try:
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        tables = [row[0] for row in connection.execute(sql)]
        return {
            table: int(next(connection.execute(f'SELECT count(*) FROM "{table}"'))[0])  # noqa: S608 - names of our own schema
            for table in sorted(tables)
        }
    finally:
        connection.close()


def list_faults(path: Path, *, whole: bool = True, most: int = 5) -> list[str]:
    """What is wrong with a database file: nothing in a sound one.

    Every page is read, and with that its checksum. `whole` also compares indexes with tables
    and rows with those that they belong to.
    """
    try:
        connection = open_connection(path, writable=False)
        try:
            check = f"PRAGMA {'integrity' if whole else 'quick'}_check({most})"
            found = [str(row[0]) for row in connection.execute(check)]
            faults = [] if found == ["ok"] else found
            if whole:
                orphans = {str(row[0]) for row in connection.execute("PRAGMA foreign_key_check")}
                faults += [f"rows of {table} belong to nothing" for table in sorted(orphans)]
            return faults
        finally:
            connection.close()
    except (*DAMAGE, apsw.CantOpenError) as error:
        return [str(error)]


def describe_venue(path: Path) -> tuple[str, str, str]:
    """Name, slug and id of the venue in this file, of whatever schema."""
    connection = open_connection(path, writable=False)
    try:
        row = next(connection.execute("SELECT name, slug, id FROM venue"), None)
    finally:
        connection.close()
    if row is None:  # it was never furnished
        return "venuebox", "venuebox", ""
    return str(row[0]), str(row[1]), str(row[2])


def make_live(path: Path) -> None:
    """Let a copy be served from now on: with a write-ahead log, as every live file."""
    connection = open_connection(path)
    try:
        connection.pragma("journal_mode", "wal")
    finally:
        connection.close()
    path.chmod(0o600)


def read_schema_number(path: Path) -> int:
    """The number of the file's schema."""
    connection = open_connection(path, writable=False)
    try:
        return int(connection.pragma("user_version"))
    finally:
        connection.close()
