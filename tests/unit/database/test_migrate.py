"""The schema is created completely or not at all. Foreign and newer files are refused."""

from pathlib import Path

import apsw
import pytest

from appliance.core.errors import OperatorError
from appliance.database import migrate as migrate_module
from appliance.database.integrity import count_rows, read_schema_number
from appliance.database.migrate import migrate
from tests.clocks import StoppedClock


def test_a_missing_database_is_never_replaced_by_an_empty_one(tmp_path: Path, clock: StoppedClock):
    with pytest.raises(OperatorError, match=r"live\.db is missing"):
        migrate(tmp_path / "live.db")

    assert not (tmp_path / "live.db").exists()


def test_a_database_with_a_newer_schema_is_refused_and_unchanged(path, clock):
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", read_schema_number(path) + 1)
    connection.close()
    before = path.read_bytes()

    with pytest.raises(OperatorError, match="newer"):
        migrate(path)

    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "not a venuebox database"), (b"no database at all" * 100, "restore")],
    ids=["another program's", "damaged"],
)
def test_a_file_that_is_not_a_venuebox_database_is_refused(
    tmp_path: Path, clock: StoppedClock, content, said
):
    path = tmp_path / "live.db"
    if content is None:
        connection = apsw.Connection(str(path))
        connection.execute("CREATE TABLE songs (title)")
        connection.close()
    else:
        path.write_bytes(content)

    with pytest.raises(OperatorError, match=said):
        migrate(path)


def test_later_migrations_run_in_one_transaction(path, monkeypatch):
    monkeypatch.setattr(migrate_module, "MIGRATIONS", ("CREATE TABLE a (x)", "DROP TABLE missing"))
    with pytest.raises(apsw.SQLError):
        migrate(path)
    assert (read_schema_number(path), count_rows(path).get("a")) == (1, None)

    monkeypatch.setattr(
        migrate_module, "MIGRATIONS", ("CREATE TABLE a (x)", "DROP TABLE heartbeat")
    )
    migrate(path)

    assert (read_schema_number(path), count_rows(path)["a"]) == (3, 0)
    assert "heartbeat" not in count_rows(path)
