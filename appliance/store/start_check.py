"""What is looked at before a database is served: a damaged one never is."""

import time
from contextlib import closing
from pathlib import Path

import apsw

from appliance.errors import Trouble
from appliance.store.connection import open_connection
from appliance.store.log_again import secure_log
from appliance.store.snapshot import DAMAGE
from appliance.store.unusable import describe_unopenable, is_unopenable
from appliance.store.wal_check import count_lost_commits
from appliance.store.watermark import FilesBeside, count_missing_frames

_SECONDS = 2.0  # the night's check looks at the rest of a very large file
_STEPS = 10_000  # of SQLite's machine, between two looks at the time


def check_before_serving(path: Path, seconds: float = _SECONDS) -> None:
    """Read the file's pages, their checksums and its log. Trouble, and nothing changed, if bad.

    A sound log is written once more: see log_again.

    Leaves a missing or a strange file to `migrate`. Spends about `seconds` at most.
    """
    if not path.exists():
        return
    try:
        connection = open_connection(path)
        try:
            # The evidence stays as it is: a bad log is not folded into the file.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            fault = _find_fault(connection, path, time.monotonic() + seconds)
            if not fault:
                secure_log(connection, path)
        finally:
            connection.close()
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.FullError, *DAMAGE) as error:
        if is_unopenable(error):
            raise Trouble(describe_unopenable(path)) from None
        fault = str(error)
    if fault:
        raise Trouble(describe_damage(path, " ".join(fault.split())))


def describe_damage(path: Path, fault: str) -> str:
    """One sentence for whoever stands in front of a box that does not start."""
    return (
        f"{path.name} is damaged ({fault}) and is not served: put the last good backup in its "
        f"place with venuebox restore --latest --data {path.parent}, which keeps what is there"
    )


def refuse_damaged_log(connection: apsw.Connection, path: Path) -> None:
    """Trouble, and nothing changed, when the log lacks what was acknowledged.

    Before a command writes: what it adds would take the place of what cannot be read. A box
    may be writing meanwhile.
    """
    fault = find_missing_pages(connection, path)
    if fault:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        raise Trouble(describe_damage(path, fault))


def find_missing_pages(connection: apsw.Connection, path: Path) -> str:
    """What was acknowledged and is not in the log of `path`; nothing of a sound one."""
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # SQLite reads the log
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
