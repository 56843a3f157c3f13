"""The night's work: due after the latest proof, caught up after a time off, told when it fails."""

import pytest

from appliance.backup.shelf import Record, read_record
from appliance.clock import newest_zone_database, parse_instant
from appliance.data_directory import DataDirectory
from appliance.store.conditions import list_conditions
from appliance.upkeep.nights import DAMAGED, NO_BACKUP, Nights, seconds_until_due
from tests.appliance.backup.making import MASTER_KEY

ZONE = newest_zone_database().zone("Africa/Casablanca")
NOW = parse_instant("2026-11-21T19:00:00Z")


@pytest.mark.parametrize(
    ("proven", "hours"),
    [
        ("2026-11-21T04:01:00Z", 9),
        ("2026-11-21T03:00:00Z", -15),
        ("2026-11-01T04:01:00Z", -471),
        ("2027-11-21T04:01:00Z", 0),
    ],
)
def test_a_backup_is_due_at_four_after_the_latest_proof(proven, hours):
    record = Record(at=parse_instant(proven))

    assert seconds_until_due(record, NOW, ZONE, 4) == hours * 3600


def test_without_any_it_is_due_now():
    assert seconds_until_due(Record(), NOW, ZONE, 4) == 0


@pytest.fixture
def nights(box, tmp_path):
    directory = DataDirectory(tmp_path)
    directory.make_folders()
    directory.master_key_file.write_bytes(MASTER_KEY)
    directory.master_key_file.chmod(0o600)
    return Nights(box, directory)


async def names(box):
    return [condition.name for condition in await box.live.database.read(list_conditions)]


async def test_a_night_leaves_a_proven_backup_and_no_complaint(nights, box, tmp_path):
    await nights.do_now()

    assert read_record(tmp_path).at == box.clock.now()
    assert len(list((tmp_path / "backups").iterdir())) == 1
    assert await names(box) == []


async def test_a_backup_that_fails_is_a_condition_until_one_is_made(nights, box, tmp_path):
    (tmp_path / "backups").rmdir()
    (tmp_path / "backups").write_text("in the way")

    await nights.do_now()
    assert await names(box) == [NO_BACKUP]

    (tmp_path / "backups").unlink()
    await nights.do_now()
    assert await names(box) == []


async def test_damage_is_a_condition_and_no_backup_is_made_of_it(nights, box, monkeypatch):
    monkeypatch.setattr("appliance.upkeep.nights.list_faults", lambda _: ["page 7 is damaged"])

    await nights.do_now()

    assert await names(box) == [DAMAGED]
    assert read_record(box.live.database.path.parent).at is None
