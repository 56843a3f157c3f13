"""After a file was written anew its log is cut, though others fold and read it meanwhile (S24)."""

import apsw
import pytest

from appliance.store import wiping
from appliance.store.connection import open_connection
from appliance.store.migrate import migrate


@pytest.fixture
def path(tmp_path, clock):
    found = tmp_path / "live.db"
    migrate(found, clock, create=True)
    return found


def test_a_log_that_somebody_else_folds_just_then_is_cut_all_the_same(path, monkeypatch):
    tries = []

    class Busy:
        def __init__(self, path):
            self.connection = open_connection(path)

        def __getattr__(self, name):
            return getattr(self.connection, name)

        def wal_checkpoint(self, **mode):
            tries.append(mode)
            if len(tries) < 4:
                raise apsw.BusyError("database is locked")
            return self.connection.wal_checkpoint(**mode)

        def execute(self, sql):
            assert sql != "VACUUM" or not tries, "it was written anew once more"
            return self.connection.execute(sql)

    monkeypatch.setattr(wiping, "open_connection", Busy)
    beside = open_connection(path)  # so that closing alone does not fold it
    try:
        assert wiping.wipe(path)
        assert path.with_name("live.db-wal").stat().st_size == 0
    finally:
        beside.close()
    assert len(tries) == 4


def test_a_log_that_is_read_all_the_time_is_left_for_later(path, monkeypatch):
    monkeypatch.setattr(wiping, "_PATIENCE_SECONDS", 0.2)
    reading = open_connection(path, writable=False)
    reading.execute("BEGIN")
    reading.execute("SELECT count(*) FROM staff").fetchall()
    try:
        assert not wiping.wipe(path)
    finally:
        reading.close()
    assert wiping.wipe(path)
