"""An action that appends, looks and appends again before it refuses takes nobody's rows along."""

import asyncio
from pathlib import Path

import pytest

from appliance.clock import StoppedClock, newest_zone_database
from appliance.errors import TableTaken
from appliance.store.connection import Transaction
from appliance.store.database import Database
from appliance.store.migrate import migrate
from appliance.tokens import Tokens


@pytest.fixture
async def database(tmp_path: Path, clock: StoppedClock):
    path = tmp_path / "live.db"
    migrate(path, clock, create=True)
    opened = Database(path, clock, Tokens(), newest_zone_database())
    yield opened
    await opened.close()


def append_event(tx: Transaction, kind: str) -> None:
    tx.append("event", {"seq": tx.next_number("event"), "type": kind, "occurred_at": 1})


@pytest.mark.parametrize("looks", [1, 2, 3])
async def test_who_looks_again_before_refusing_undoes_nobody_elses_event(database, looks):
    def change_and_refuse(tx: Transaction) -> None:
        tx.insert("staff", {"id": tx.new_id(), "name": "n", "role": "door", "created_at": 1})
        for look in range(1, looks + 1):
            append_event(tx, "undone")
            assert tx.value("SELECT count(*) FROM event") == 1 + look
        raise TableTaken

    await asyncio.gather(
        database.write(append_event, "kept"),
        database.write(change_and_refuse),
        database.write(append_event, "kept"),
        return_exceptions=True,
    )

    kept = database.peek(lambda reader: list(reader.rows("SELECT type FROM event")))
    assert kept == [("kept",), ("kept",)]
    assert database.commits == 1
