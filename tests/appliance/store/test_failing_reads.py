"""A read that the disk fails is refused as one, and leaves its connection as it was."""

from pathlib import Path

import apsw
import pytest

from appliance.clock import newest_zone_database
from appliance.errors import Unavailable
from appliance.store.connection import Reader
from appliance.store.database import Database
from appliance.store.migrate import migrate
from appliance.tokens import Tokens


@pytest.fixture
async def database(tmp_path: Path, clock):
    path = tmp_path / "live.db"
    migrate(path, clock, create=True)
    opened = Database(path, clock, Tokens(), newest_zone_database())
    yield opened
    await opened.close()


def count(reader: Reader) -> int:
    return reader.value("SELECT count(*) FROM staff")


def fail(_reader: Reader) -> None:
    raise apsw.IOError("disk I/O error")


def fail_and_end(reader: Reader) -> None:
    """As SQLite may, when a disk gives nothing: it ends the transaction by itself."""
    reader.connection.execute("ROLLBACK")
    fail(reader)


@pytest.mark.parametrize("query", [fail, fail_and_end])
async def test_whatever_sqlite_does_about_it_the_next_read_is_answered(database, query):
    for _ in range(3):  # more than there are readers
        with pytest.raises(Unavailable):
            await database.read(query)
        with pytest.raises(Unavailable):
            database.peek(query)

    assert [await database.read(count) for _ in range(3)] == [0, 0, 0]
    assert database.peek(count) == 0
