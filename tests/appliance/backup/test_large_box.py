"""A box of years, larger than what any connection keeps in memory, is backed up and restored."""

import apsw
import pytest

from appliance.backup.proof import open_backup
from appliance.backup.restoring import restore_blank
from appliance.backup.shelf import read_record
from appliance.data_directory import DataDirectory
from appliance.errors import Trouble
from appliance.store.connection import open_connection
from appliance.store.snapshot import count_rows, list_faults
from tests.appliance.backup.making import KEY, a_box_with_guests, a_maker

GROW = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
INSERT INTO security_log (at, actor, what, detail, hash)
SELECT :at + i, 'console', 'grown', json_object('note', hex(randomblob(400))),
    randomblob(32) FROM n
"""


@pytest.fixture
def box(tmp_path):
    return a_box_with_guests(tmp_path)


@pytest.mark.proves("G6")
def test_a_box_larger_than_any_cache_is_sealed_proven_and_restored(box, tmp_path):
    live = box.root / "live.db"
    connection = open_connection(live)
    connection.execute(GROW, {"at": box.clock.now()})
    connection.close()
    assert live.stat().st_size > 40 << 20, "who writes keeps 32 MiB in memory"

    maker = a_maker(box)
    path, proven = maker.make()

    assert proven.reservations == 10
    other = DataDirectory(tmp_path / "other")
    with open_backup(path) as file:
        restore_blank(file, KEY, other, box.clock, maker.zones, lambda _done, _all: None)
    restored = other.database("live")
    assert list_faults(restored) == []
    before = count_rows(live)
    assert count_rows(restored) == before | {"security_log": before["security_log"] + 1}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (apsw.IOError("disk I/O error"), r"disk I/O error\): run venuebox doctor"),
        (apsw.FullError("database or disk is full"), "there is no room for it"),
    ],
)
def test_what_sqlite_refuses_is_said_and_remembered(box, monkeypatch, error, said):
    def fail(_path):
        raise error

    monkeypatch.setattr("appliance.backup.making.describe_venue", fail)

    with pytest.raises(Trouble, match=said):
        a_maker(box).make()

    record = read_record(box.root)
    assert record.tried_at == box.clock.now()
    assert record.trouble is not None
    assert record.at is None
    assert list((box.root / "backups").glob("*.venuebox*")) == []
