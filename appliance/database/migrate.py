"""Schema migrations: upgrade a database file to the newest schema."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import apsw

from appliance.core.errors import OperatorError
from appliance.database.connection import (
    check_engine,
    check_pages,
    describe_missing,
    describe_newer,
    describe_unopenable,
    is_unopenable,
    lay_out_pages,
    wait_for_others,
)
from appliance.database.integrity import describe_damage, read_schema_number

APPLICATION_ID = 0x53564342  # "SVCB", which marks a box database

# A commit writes whole pages, and a booking changes about forty of them. Small pages therefore
# reduce the amount of data written to an SD card.
PAGE_BYTES = 1024


def list_migrations() -> list[tuple[int, str]]:
    """Return the migrations in order as (number, SQL)."""
    folder = resources.files("appliance.database").joinpath("migrations")
    files = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return [(int(name[:4]), folder.joinpath(name).read_text("utf-8")) for name in files]


def find_upgrade(paths: Sequence[Path]) -> tuple[int, int] | None:
    """Return (oldest schema found, newest schema) if `migrate` would upgrade one of `paths`.

    Returns None if no upgrade is due, or if `migrate` would refuse a file because it is missing,
    damaged, newer than this program or not a box database.
    """
    newest = list_migrations()[-1][0]
    try:
        found = [read_schema_number(path) for path in paths]
    except apsw.Error:
        return None
    oldest = min(found)
    return (oldest, newest) if 0 < oldest < newest and max(found) <= newest else None


def migrate(path: Path, *, create: bool = False) -> int:
    """Upgrade `path` to the newest schema. Returns the schema number.

    All migrations run in one transaction. `serve` makes a backup first. Raises OperatorError, with
    the file unchanged, if the file is missing (unless `create`), damaged, not a box database or
    newer than this program, or if the disk is full or SQLite is too old.
    """
    check_engine()
    check_pages()
    if not create and not path.exists():
        raise OperatorError(describe_missing(path))
    connection = apsw.Connection(str(path))
    try:
        wait_for_others(connection)
        return _migrate(connection, path, list_migrations())
    except apsw.FullError:
        raise OperatorError(
            f"{path.name} was not upgraded: {path.parent} has no free space. Nothing was "
            "changed. Free some space, then start again."
        ) from None
    except (apsw.NotADBError, apsw.CorruptError, apsw.IOError) as error:
        if is_unopenable(error):
            raise OperatorError(describe_unopenable(path)) from None
        raise OperatorError(describe_damage(path, str(error))) from None
    finally:
        connection.close()


def _migrate(connection: apsw.Connection, path: Path, migrations: list[tuple[int, str]]) -> int:
    newest = migrations[-1][0]
    found = _check(connection, path, newest)
    if found == newest:
        return newest
    if not found:
        lay_out_pages(connection, PAGE_BYTES)
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.pragma("journal_mode", "wal")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, sql in migrations:
            if number > found:
                connection.execute(sql)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {newest}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    path.chmod(0o600)
    return newest


def _check(connection: apsw.Connection, path: Path, newest: int) -> int:
    """Return the file's schema number.

    Raises OperatorError if the file is newer than this program or not a box database.
    """
    found = int(connection.pragma("user_version"))
    application_id = int(connection.pragma("application_id"))
    tables = next(connection.execute("SELECT count(*) FROM sqlite_schema"))[0]
    if application_id != APPLICATION_ID and (found or tables):
        raise OperatorError(f"{path.name} is not a venuebox database. Nothing was changed.")
    if found > newest:
        raise OperatorError(describe_newer(path, found, newest))
    return found
