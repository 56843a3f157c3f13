"""Copies of a database, integrity checks, and transactions for commands.

A copy takes two writes. `VACUUM INTO` leaves deleted content out, which a copy page by page would
keep. But pages that it writes before page 1, because its cache is full, get no checksum: SQLite
learns from page 1 that there are any. So its result is copied again, page by page, into a file
that has its page 1 already.
"""

import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from appliance.clock import Clock, ZoneDatabase
from appliance.core.errors import OperatorError
from appliance.core.tokens import Tokens
from appliance.database.connection import (
    UNUSABLE,
    Transaction,
    describe_unopenable,
    describe_unusable,
    is_unopenable,
    lay_out_pages,
    open_connection,
    open_for_command,
    quota_as_full,
)
from appliance.database.wal import (
    FilesBeside,
    Watermark,
    count_lost_commits,
    count_missing_frames,
    rewrite_log,
)

_WITHOUT_CHECKSUMS = "unix"


def write_copy(connection: apsw.Connection, copy: Path) -> None:
    """Write a snapshot of the database to `copy`, 0600, without blocking writers.

    Needs twice the database's size on the volume of `copy`, and little memory. apsw.Error if a
    page is damaged or the disk is full; then no file is left.
    """
    bare = copy.with_name(f"{copy.name}.bare")
    try:
        with quota_as_full(connection):
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
        target.pragma("journal_mode", "off")  # not used before it is complete
        target.pragma("synchronous", "off")
        target.execute("CREATE TABLE first_page(content)")
        with quota_as_full(target), target.backup("main", source, "main") as pages:
            pages.step()


_NAME = re.compile(r"(live|test)-before-upgrade-\d{4}-(\d+)\.db")


def forget_copies(folder: Path, before: int) -> None:
    """Delete pre-upgrade copies made before `before` (ms): they contain erased guests' data."""
    for path in folder.glob("*-before-upgrade-*.db"):
        named = _NAME.fullmatch(path.name)
        if named and int(named[2]) < before:
            path.unlink(missing_ok=True)


DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError)


def copy_database(path: Path, copy: Path) -> None:
    """Write a snapshot of the database at `path` to `copy`, without blocking writers.

    OperatorError if a page is damaged or the database cannot be opened. OSError if the disk is
    full.
    """
    try:
        with closing(open_for_command(path)) as connection:
            write_copy(connection, copy)
    except apsw.FullError as error:
        raise OSError(f"no room for a copy of {path.name}") from error
    except DAMAGE as error:
        if is_unopenable(error):
            raise OperatorError(describe_unopenable(path)) from None
        raise OperatorError(f"{path.name} is damaged ({error}): run venuebox doctor") from None


def count_rows(path: Path) -> dict[str, int]:
    """Return the number of rows of each table, by table name."""
    sql = """SELECT name FROM sqlite_schema
             WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"""
    with _opened(path) as connection:
        tables = [str(row[0]) for row in connection.execute(sql)]
        counts = (connection.execute(f'SELECT count(*) FROM "{name}"') for name in tables)  # noqa: S608 - of our own schema
        return {name: int(next(found)[0]) for name, found in zip(tables, counts, strict=True)}


def list_faults(path: Path) -> list[str]:
    """Return the faults of a database file; empty if it is intact.

    Reads every page and verifies its checksum; checks indexes against tables, and foreign keys.
    """
    try:
        with _opened(path) as connection:
            return find_faults(connection, "integrity_check(5)")
    except (*DAMAGE, apsw.CantOpenError) as error:
        return [str(error)]


def describe_venue(path: Path) -> tuple[str, str, str]:
    """Return (name, slug, id) of the venue in this file, for any schema version."""
    with _opened(path) as connection:
        row = next(connection.execute("SELECT name, slug, id FROM venue"), None)
    # None: no venue was set up yet.
    return ("venuebox", "venuebox", "") if row is None else (row[0], row[1], row[2])


def make_live(path: Path) -> None:
    """Make a copy ready to be served: WAL mode, 0600."""
    with closing(open_connection(path)) as connection:
        connection.pragma("journal_mode", "wal")
    path.chmod(0o600)


def read_schema_number(path: Path) -> int:
    """Return the schema number of the file."""
    with _opened(path) as connection:
        return int(connection.pragma("user_version"))


def find_faults(connection: apsw.Connection, check: str) -> list[str]:
    """Run `check`, a PRAGMA of SQLite, and check foreign keys. Returns the faults."""
    found = [str(row[0]) for row in connection.execute(f"PRAGMA {check}")]
    orphans = {str(row[0]) for row in connection.execute("PRAGMA foreign_key_check")}
    damage = [] if found == ["ok"] else found
    return damage + [f"rows of {table} that refer to missing rows" for table in sorted(orphans)]


def _opened(path: Path) -> closing[apsw.Connection]:
    return closing(open_connection(path, writable=False))


_SECONDS = 2.0  # the nightly check covers the rest of a very large file
_STEPS = 10_000  # SQLite virtual machine instructions between two time checks


def check_before_serving(path: Path, seconds: float = _SECONDS) -> None:
    """Check the file's pages, their checksums and its WAL. OperatorError if damaged.

    An intact WAL is rewritten: see `rewrite_log`.

    Ignores a missing file, which `migrate` reports. Takes about `seconds` at most.
    """
    if not path.exists():
        return
    try:
        connection = open_connection(path)
        try:
            # Keep the evidence: do not checkpoint a damaged WAL into the file.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            fault = _find_fault(connection, path, time.monotonic() + seconds)
            if not fault:
                rewrite_log(connection, path)
        finally:
            connection.close()
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.FullError, *DAMAGE) as error:
        if is_unopenable(error):
            raise OperatorError(describe_unopenable(path)) from None
        fault = str(error)
    if fault:
        raise OperatorError(describe_damage(path, " ".join(fault.split())))


def describe_damage(path: Path, fault: str) -> str:
    """Describe a damaged database, and how to restore it."""
    return (
        f"{path.name} is damaged ({fault}) and is not served: put the last good backup in its "
        f"place with venuebox restore --latest --data {path.parent}, which keeps what is there"
    )


def refuse_damaged_log(connection: apsw.Connection, path: Path) -> None:
    """Raise OperatorError, without changing the file, if the WAL lacks acknowledged commits.

    Call before a command writes: its commits would overwrite the unreadable ones. The box may
    be writing meanwhile.
    """
    fault = find_missing_pages(connection, path)
    if fault:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        raise OperatorError(describe_damage(path, fault))


def find_missing_pages(connection: apsw.Connection, path: Path) -> str:
    """Describe acknowledged pages that the WAL of `path` lacks; `""` if it is intact."""
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # SQLite reads the WAL
    with closing(FilesBeside(path)) as files:
        missing = count_missing_frames(connection, files)
    return f"its log lacks {missing} pages that were acknowledged" if missing else ""


def _find_fault(connection: apsw.Connection, path: Path, until: float) -> str:
    missing = find_missing_pages(connection, path)
    lost = count_lost_commits(connection, path)
    if lost:
        return f"its log holds {lost} commits behind a damaged byte"
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
    """Open a transaction on `path`: durably committed at the end, rolled back on any exception.

    Waits up to 5 s for the box's own writer. OperatorError if the file cannot be used, or its
    WAL is damaged. The transaction's notices are dropped: wake a running box with `wake_box`,
    and it re-reads the rows.
    """
    try:
        connection = open_connection(path)
    except UNUSABLE as error:
        raise OperatorError(describe_unusable(path, error)) from None
    try:
        refuse_damaged_log(connection, path)
        rewrite_log(connection, path)
        connection.execute("BEGIN IMMEDIATE")
        try:
            tx = Transaction(connection, clock, zones, tokens)
            yield tx
            with quota_as_full(connection):
                tx.keep()
                connection.execute("COMMIT")
            with closing(FilesBeside(path)) as files:
                Watermark(connection, files).rise()
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    except UNUSABLE as error:
        raise OperatorError(describe_unusable(path, error)) from None
    finally:
        connection.close()
