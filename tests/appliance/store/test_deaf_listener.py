"""Who stumbles over a notice keeps it from nobody else."""

from pathlib import Path

from appliance.clock import newest_zone_database
from appliance.store.connection import Transaction
from appliance.store.database import Database
from appliance.store.migrate import migrate
from appliance.tokens import Tokens


async def test_a_listener_that_fails_makes_no_other_deaf(tmp_path: Path, clock, caplog):
    def write(tx: Transaction) -> None:
        tx.execute("UPDATE heartbeat SET at = 1")
        tx.notices.append("news of Salma Idrissi")

    def stumble(notices: object) -> None:
        raise ValueError(notices)

    heard: list[object] = []
    path = tmp_path / "live.db"
    migrate(path, clock, create=True)
    database = Database(path, clock, Tokens(), newest_zone_database())
    database.on_commit(stumble)
    database.on_commit(heard.extend)

    await database.write(write)
    database.look_again()

    assert heard[0] == "news of Salma Idrissi"
    assert len(heard) == 2
    assert "hearing of a commit failed: ValueError" in caplog.text
    assert "Salma" not in caplog.text
    await database.close()
