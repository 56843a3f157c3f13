"""The write-ahead log is folded beside the work: it stays short, and a failing disk is told."""

import asyncio
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from appliance.clock import StoppedClock, newest_zone_database
from appliance.errors import Unavailable
from appliance.store.connection import Reader, Transaction, open_connection
from appliance.store.database import Database
from appliance.store.folding import DUE_PAGES
from appliance.store.migrate import migrate
from appliance.tokens import Tokens

PAGE = 4096
LONG = "x" * (40 * PAGE)  # forty pages a commit


@pytest.fixture
def path(tmp_path: Path, clock: StoppedClock) -> Path:
    found = tmp_path / "live.db"
    migrate(found, clock, create=True)
    return found


@pytest.fixture
async def database(path: Path, clock: StoppedClock):
    opened = Database(path, clock, Tokens(), newest_zone_database())
    yield opened
    await opened.close()


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


def size_of(path: Path) -> int:
    return path.stat().st_size


async def until(is_true, seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not is_true():  # noqa: ASYNC110 - what is waited for happens on a thread
            await asyncio.sleep(0.01)


async def test_under_steady_work_the_log_stays_short(database: Database, path: Path):
    await work(database, 400)

    assert pages_of_log(path) < 8 * DUE_PAGES  # of 16,000 that were written
    assert await database.read(count) == 400


async def test_a_long_reader_delays_folding_and_loses_nothing(database: Database, path: Path):
    other = open_connection(path, writable=False)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM staff").fetchall()
    await work(database, 120)
    grown = pages_of_log(path)

    other.close()
    await work(database, 60)

    assert grown > 4 * DUE_PAGES
    await until(lambda: size_of(path) > 120 * len(LONG))  # what the reader held back is there
    assert await database.read(count) == 180


async def test_the_log_is_folded_when_the_work_ends_too(database: Database, path: Path):
    await work(database, DUE_PAGES // 40 + 2)

    await until(lambda: size_of(path) > DUE_PAGES * PAGE)


async def test_a_disk_that_fails_while_folding_ends_all_acknowledgement(
    path: Path, clock: StoppedClock
):
    broken: list[BaseException] = []
    database = Database(path, clock, Tokens(), newest_zone_database(), broken.append)
    trouble = apsw.IOError("disk I/O error")

    class Failing:
        def wal_checkpoint(self, **_mode: int) -> tuple[int, int]:
            raise trouble

        def close(self) -> None:
            connection.close()

    connection, database._folder._connection = database._folder._connection, Failing()
    try:
        with suppress(Unavailable):
            await work(database, DUE_PAGES // 40 + 2)
        await until(lambda: broken)

        with pytest.raises(Unavailable):
            await database.write(note, "more")
        assert broken == [trouble]
    finally:
        await database.close()


async def test_where_a_command_folds_just_now_nobody_is_warned(
    database: Database, path: Path, caplog: pytest.LogCaptureFixture
):
    folder = database._folder
    real, tries = folder._connection, []

    class BusyOnce:
        def wal_checkpoint(self, **mode: int) -> tuple[int, int]:
            tries.append(mode)
            if len(tries) == 1:
                raise apsw.BusyError("database is locked")
            return real.wal_checkpoint(**mode)

        def close(self) -> None:
            real.close()

    folder._connection = BusyOnce()
    await work(database, 3 * DUE_PAGES // 40)

    await until(lambda: size_of(path) > DUE_PAGES * PAGE)
    assert len(tries) > 1
    assert caplog.text == ""
