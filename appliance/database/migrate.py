"""The schema of a database file: create it, refuse a newer one, and run later migrations."""

from importlib import resources
from pathlib import Path

import apsw

from appliance.core.errors import OperatorError
from appliance.database.connection import (
    check_engine,
    describe_missing,
    describe_newer,
    describe_unopenable,
    is_unopenable,
    wait_for_others,
)
from appliance.database.integrity import describe_damage

APPLICATION_ID = 0x53564342  # "SVCB", which marks a box database

# A commit writes whole pages, and a booking changes about forty of them. Small pages therefore
# reduce the amount of data written to an SD card.
PAGE_BYTES = 1024


# SQL that leads from schema 1 to 2, from 2 to 3, and so on. Never change a released one.
# schema.sql is always the newest schema, and every new database is made from it.
MIGRATIONS: tuple[str, ...] = ()


def newest_schema() -> int:
    """Return the schema number that this version of the program reads and writes."""
    return 1 + len(MIGRATIONS)


def migrate(path: Path, *, create: bool = False) -> None:
    """Bring `path` to the newest schema, in one transaction. With `create`, make it if missing.

    Raises OperatorError, with the file unchanged, if the file is missing (unless `create`),
    damaged, not a box database or newer than this program, or if the disk is full or SQLite is too
    old.
    """
    check_engine()
    if not create and not path.exists():
        raise OperatorError(describe_missing(path))
    connection = apsw.Connection(str(path))
    try:
        wait_for_others(connection)
        bring_up_to_date(connection, path)
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


def bring_up_to_date(connection: apsw.Connection, path: Path) -> None:
    """Run the missing migrations on the database of `connection`, in one transaction.

    Raises OperatorError if it is newer than this program or not a box database.
    """
    newest = newest_schema()
    found = _check(connection, path, newest)
    if found == newest:
        return
    if not found:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.pragma("journal_mode", "wal")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for sql in MIGRATIONS[found - 1 :] if found else (_read_schema(),):
            connection.execute(sql)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {newest}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    path.chmod(0o600)


def _read_schema() -> str:
    return resources.files("appliance.database").joinpath("schema.sql").read_text("utf-8")


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
