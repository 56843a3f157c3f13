"""The write-ahead log is folded beside the work: it stays short, and a failing disk is told."""

from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from appliance.core.errors import Unavailable
from appliance.database import wal
from appliance.database.connection import Reader, Transaction, open_connection
from appliance.database.database import Database
from appliance.database.migrate import PAGE_BYTES
from tests.waiting import until

PAGE = PAGE_BYTES
LONG = "x" * (160 * PAGE)  # 160 pages a commit
DUE_PAGES = 2000


@pytest.fixture(autouse=True)
def _checkpoint_sooner(monkeypatch):
    monkeypatch.setattr(wal, "DUE_PAGES", DUE_PAGES)


def note(tx: Transaction, name: str) -> None:
    row = {"id": tx.new_id(), "name": name, "role": "door", "created_at": tx.now}
    tx.insert("staff", {**row, "password": LONG})


def count(reader: Reader) -> int:
    return int(reader.value("SELECT count(*) FROM staff"))


async def work(database: Database, commits: int) -> None:
    """Commits one after the other, without a pause in which the log could be folded at ease."""
    for n in range(commits):
        await database.write(note, f"{database.commits}-{n}")


def pages_of_log(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size // PAGE


async def test_under_steady_work_the_log_begins_anew(database: Database, path: Path):
    sizes = [0]
    for _ in range(20):  # on a busy machine folding falls behind for a while
        await work(database, 50)
        sizes.append(pages_of_log(path))
        if sizes[-1] - sizes[-2] < DUE_PAGES:
            break

    assert sizes[-1] - sizes[-2] < DUE_PAGES  # of 8,000 pages that were written in this round
    assert await database.read(count) == 50 * (len(sizes) - 1)


async def test_a_long_reader_delays_folding_and_loses_nothing(database: Database, path: Path):
    other = open_connection(path, writable=False)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM staff").fetchall()
    await work(database, 60)
    grown = pages_of_log(path)

    other.close()
    await work(database, 30)

    assert grown > 4 * DUE_PAGES
    await until(lambda: path.stat().st_size > 60 * len(LONG))  # what the reader held back is there
    assert await database.read(count) == 90


async def test_a_disk_that_fails_while_folding_ends_all_acknowledgement(database, broken):
    trouble = apsw.IOError("disk I/O error")

    class Failing:
        def wal_checkpoint(self, **_mode: int) -> tuple[int, int]:
            raise trouble

        def close(self) -> None:
            connection.close()

    connection, database._checkpointer._connection = database._checkpointer._connection, Failing()
    with suppress(Unavailable):
        await work(database, DUE_PAGES // 160 + 2)
    await until(lambda: broken)

    with pytest.raises(Unavailable):
        await database.write(note, "more")
    assert broken == [trouble]


def test_a_log_that_is_read_all_the_time_is_left_for_later(path, monkeypatch):
    monkeypatch.setattr(wal, "_PATIENCE_SECONDS", 0.2)
    reading = open_connection(path, writable=False)
    reading.execute("BEGIN")
    reading.execute("SELECT count(*) FROM staff").fetchall()
    try:
        assert not wal.wipe(path)
    finally:
        reading.close()
    assert wal.wipe(path)
