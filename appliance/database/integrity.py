"""Database copies, integrity checks, and transactions for commands.

A copy is made in two steps. First, `VACUUM INTO` writes a file without deleted content. Some of its
pages may lack a checksum, because SQLite learns from page 1 whether pages have checksums, and
VACUUM may write other pages before page 1. Second, this file is copied page by page into a file
that already has a page 1, so that every page gets a checksum.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from appliance.clock import Clock, ZoneDatabase
from appliance.core.errors import OperatorError
from appliance.core.files import sync
from appliance.core.tokens import Tokens
from appliance.database import wal
from appliance.database.connection import (
    UNUSABLE,
    Transaction,
    check_pages,
    configure,
    describe_unopenable,
    describe_unusable,
    is_unopenable,
    lay_out_pages,
    open_connection,
    open_for_command,
)

_WITHOUT_CHECKSUMS = "unix"


def write_copy(connection: apsw.Connection, copy: Path) -> None:
    """Write a snapshot of the database to `copy`, with mode 0600, without blocking writers.

    Needs free space of twice the database's size on the volume of `copy`, but little memory. If a
    page is damaged or the disk is full, raises apsw.Error and leaves no file behind.
    """
    bare = copy.with_name(f"{copy.name}.bare")
    try:
        connection.execute("VACUUM INTO :copy", {"copy": str(bare)})
        bare.chmod(0o600)
        _copy_pages(bare, copy)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    finally:
        bare.unlink(missing_ok=True)


def _copy_pages(bare: Path, copy: Path) -> None:
    source = apsw.Connection(str(bare), flags=apsw.SQLITE_OPEN_READONLY, vfs=_WITHOUT_CHECKSUMS)
    with closing(source), closing(apsw.Connection(str(copy))) as target:
        copy.chmod(0o600)
        lay_out_pages(target, source.pragma("page_size"))
        # No journal is needed, because an incomplete copy is deleted.
        target.pragma("journal_mode", "off")
        target.pragma("synchronous", "off")
        target.execute("CREATE TABLE first_page(content)")
        with target.backup("main", source, "main") as pages:
            pages.step()


DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError)


def copy_database(path: Path, copy: Path) -> None:
    """Write a snapshot of the database at `path` to `copy`, without blocking writers.

    Raises OperatorError if a page is damaged or the database cannot be opened, and OSError if the
    disk is full.
    """
    try:
        with closing(open_for_command(path)) as connection:
            write_copy(connection, copy)
    except apsw.FullError as error:
        raise OSError(f"there is not enough space for a copy of {path.name}") from error
    except DAMAGE as error:
        if is_unopenable(error):
            raise OperatorError(describe_unopenable(path)) from None
        raise OperatorError(f"{path.name} is damaged ({error}). Run venuebox doctor.") from None


def salvage_database(path: Path, copy: Path) -> dict[str, int]:
    """Copy all data that SQLite can read from `path` to `copy`, even if page checksums are wrong.

    Does not change the file at `path`. Returns the number of rows in each table, by table name.
    Raises OperatorError, and leaves no file behind, if SQLite's integrity check finds faults or the
    disk is full.
    """
    check_pages()
    flags = apsw.SQLITE_OPEN_READONLY
    try:
        with closing(apsw.Connection(str(path), flags=flags, vfs=_WITHOUT_CHECKSUMS)) as connection:
            configure(connection)
            if faults := find_faults(connection, "integrity_check(5)"):
                raise OperatorError(
                    f"{path.name} cannot be salvaged ({'; '.join(faults)}). Restore a backup."
                )
            write_copy(connection, copy)
        rows = count_rows(copy)
        make_live(copy)
        sync(copy)
    except UNUSABLE as error:
        raise OperatorError(describe_unusable(path, error)) from None
    return rows


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

    Reads every page, verifies its checksum, and checks foreign keys and indexes.
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
    return row or ("venuebox", "venuebox", "")  # if no venue is set up yet


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


def check_before_serving(path: Path, seconds: float = _CHECK_SECONDS) -> None:
    """Check the file's pages, checksums and WAL. Stop the check after about `seconds`.

    Rewrites the WAL if it is intact (see `rewrite_log`). Ignores a missing file, which `migrate`
    reports. Raises OperatorError if the file is damaged or cannot be opened.
    """
    if not path.exists():
        return
    try:
        connection = open_connection(path)
        try:
            # Do not checkpoint on close, because a damaged WAL must not change the file.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            fault = _find_fault(connection, path, time.monotonic() + seconds)
            if not fault:
                wal.rewrite_log(connection, path)
        finally:
            connection.close()
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.FullError, *DAMAGE) as error:
        if is_unopenable(error):
            raise OperatorError(describe_unopenable(path)) from None
        fault = str(error)
    if fault:
        raise OperatorError(describe_damage(path, " ".join(fault.split())))


def describe_damage(path: Path, fault: str) -> str:
    """Return a message that describes the damage to the database and says how to restore it."""
    return (
        f"{path.name} is damaged ({fault}), so the box cannot use it. If another program wrote to "
        "the file, try venuebox salvage first. Otherwise, restore the last good backup with "
        f"venuebox restore --latest --data {path.parent}. The restore keeps the damaged files."
    )


def refuse_damaged_log(connection: apsw.Connection, path: Path) -> None:
    """Raise OperatorError, without changing the file, if the WAL lacks acknowledged commits.

    Call it before a command writes, because new commits would overwrite the unreadable commits. The
    box may be writing at the same time.
    """
    fault = find_missing_pages(connection, path)
    if fault:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        raise OperatorError(describe_damage(path, fault))


def find_missing_pages(connection: apsw.Connection, path: Path) -> str:
    """Return a message saying how many acknowledged pages are missing from the WAL of `path`.

    Returns "" if no page is missing.
    """
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # makes SQLite read the WAL
    with closing(wal.FilesBeside(path)) as files:
        missing = wal.count_missing_frames(connection, files)
    return f"{missing} saved pages are missing from its write-ahead log" if missing else ""


def _find_fault(connection: apsw.Connection, path: Path, until: float) -> str:
    missing = find_missing_pages(connection, path)
    if lost := wal.count_lost_commits(connection, path):
        return f"its write-ahead log has {lost} commits after a damaged byte"
    if missing:
        return missing
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

    Any exception rolls the transaction back. Waits up to 5 s while another process commits. The
    transaction's change notices are discarded, so call `wake_box` afterwards to make a running box
    read the changed rows. Raises OperatorError if the file cannot be used or its WAL is damaged.
    """
    try:
        connection = open_connection(path)
    except UNUSABLE as error:
        raise OperatorError(describe_unusable(path, error)) from None
    try:
        refuse_damaged_log(connection, path)
        wal.rewrite_log(connection, path)
        connection.execute("BEGIN IMMEDIATE")
        try:
            tx = Transaction(connection, clock, zones, tokens)
            yield tx
            tx.keep()
            connection.execute("COMMIT")
            with closing(wal.FilesBeside(path)) as files:
                wal.raise_watermark(connection, files)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    except UNUSABLE as error:
        raise OperatorError(describe_unusable(path, error)) from None
    finally:
        connection.close()
