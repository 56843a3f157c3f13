"""A disk that fails while a file is written anew ends the service, as it does in a commit (F5)."""

from pathlib import Path

import apsw
import pytest

from appliance.clock import StoppedClock, newest_zone_database
from appliance.errors import Unavailable
from appliance.store import database as database_module
from appliance.store.connection import Reader, Transaction
from appliance.store.database import Database
from appliance.store.migrate import migrate
from appliance.tokens import Tokens


@pytest.fixture
def broken() -> list[BaseException]:
    return []


@pytest.fixture
async def database(tmp_path: Path, clock: StoppedClock, broken: list[BaseException]):
    path = tmp_path / "live.db"
    migrate(path, clock, create=True)
    opened = Database(path, clock, Tokens(), newest_zone_database(), broken.append)
    yield opened
    await opened.close()


def fail_with(number: int, monkeypatch: pytest.MonkeyPatch) -> apsw.Error:
    failure = apsw.exception_for(number)

    def fail(_path: Path) -> bool:
        raise failure

    monkeypatch.setattr(database_module, "wipe", fail)
    return failure


def count(reader: Reader) -> int:
    return int(reader.value("SELECT count(*) FROM staff"))


def note(tx: Transaction) -> None:
    tx.insert("staff", {"id": tx.new_id(), "name": "A", "role": "door", "created_at": tx.now})


@pytest.mark.parametrize("number", [apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_WRITE])
async def test_what_the_disk_did_not_keep_ends_all_acknowledgement(
    database, broken, monkeypatch, number
):
    failure = fail_with(number, monkeypatch)

    with pytest.raises(apsw.IOError):
        await database.wipe()

    assert broken == [failure]
    with pytest.raises(Unavailable):
        await database.write(note)
    assert await database.read(count) == 0


@pytest.mark.parametrize("number", [apsw.SQLITE_IOERR_DATA, apsw.SQLITE_IOERR_READ])
async def test_what_cannot_be_read_is_found_at_night_and_ends_no_evening(
    database, broken, monkeypatch, number
):
    fail_with(number, monkeypatch)

    with pytest.raises(apsw.IOError):
        await database.wipe()

    await database.write(note)
    assert await database.read(count) == 1
    assert broken == []
