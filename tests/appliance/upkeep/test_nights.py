"""The night's work: due after the latest proof, caught up after a time off, told when it fails."""

import pytest

from appliance.backup.shelf import Record, read_record, write_record
from appliance.clock import newest_zone_database, parse_instant
from appliance.data_directory import DataDirectory
from appliance.store.conditions import Condition, list_conditions, put_condition
from appliance.upkeep.nights import DAMAGED, NO_BACKUP, Nights, seconds_until_due
from tests.appliance.backup.making import MASTER_KEY
from tests.appliance.upkeep.keeping import Timer

ZONE = newest_zone_database().zone("Africa/Casablanca")
NOW = parse_instant("2026-11-21T19:00:00Z")


@pytest.mark.parametrize(
    ("proven", "hours"),
    [
        ("2026-11-21T04:01:00Z", 9),
        ("2026-11-21T03:00:00Z", -15),
        ("2026-11-01T04:01:00Z", -471),
        ("2027-11-21T04:01:00Z", 0),
        (None, 0),
    ],
)
def test_a_backup_is_due_at_four_after_the_latest_proof(proven, hours):
    record = Record(at=proven and parse_instant(proven))

    assert seconds_until_due(record, NOW, ZONE, 4) == hours * 3600


@pytest.fixture
def nights(box, tmp_path):
    directory = DataDirectory(tmp_path)
    directory.make_folders()
    directory.master_key_file.write_bytes(MASTER_KEY)
    directory.master_key_file.chmod(0o600)
    return Nights(box, directory)


async def names(box):
    return [condition.name for condition in await box.live.database.read(list_conditions)]


@pytest.mark.proves("S26")
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


DAY = 86_400


async def test_where_the_night_hangs_it_is_said_all_the_same(nights, box, tmp_path):
    del nights  # it made the directory
    waking = {}

    def call_later(seconds, call):
        waking[seconds] = call
        return Timer()

    async def an_hour_passes():
        """Only the look at the backups: the night itself hangs."""
        waking.pop(3600.0)()
        await watched.settle()

    watched = Nights(box, DataDirectory(tmp_path), call_later)
    write_record(tmp_path, Record(at=box.clock.now()))
    await watched.start()

    box.clock.advance(DAY)
    await an_hour_passes()
    assert await names(box) == []

    box.clock.advance(DAY)
    await an_hour_passes()
    [condition] = await box.live.database.read(list_conditions)
    assert (condition.name, condition.since) == (NO_BACKUP, box.clock.now())

    box.clock.advance(3600)
    await an_hour_passes()
    [later] = await box.live.database.read(list_conditions)
    assert later.since == condition.since

    write_record(tmp_path, Record(at=box.clock.now()))  # one made by hand
    await an_hour_passes()
    assert await names(box) == []
    await watched.close()


@pytest.mark.parametrize("doubt", [None, "clock_held", "clock_leapt"])
async def test_a_night_forgets_plain_copies_of_upgrades_long_ago_by_a_clock_that_is_right(
    nights, box, tmp_path, doubt
):
    folder, now = tmp_path / "backups", box.clock.now()
    old, new = (
        folder / f"live-before-upgrade-0001-{at}.db"
        for at in (now - 15_000 * DAY, now - 13_000 * DAY)
    )
    old.write_bytes(b"")
    new.write_bytes(b"")
    if doubt:
        await box.live.database.write(put_condition, Condition(doubt, "", 0, "it is wrong"))

    await nights.do_now()

    assert (old.exists(), new.exists()) == (doubt is not None, True)


@pytest.mark.proves("decision: Which clock do durations and timers run on?")
async def test_after_a_sleep_of_the_machine_the_night_is_looked_at_within_a_minute(
    nights, box, tmp_path
):
    del nights  # it made the directory
    told, timer = [], Timer()
    slept = Nights(box, DataDirectory(tmp_path), timer, told.append)
    write_record(tmp_path, Record(at=box.clock.now()))
    slept._watch_later = lambda: None  # the look at what is overdue has a timer of its own
    await slept.start()
    timer.callback()
    await slept.settle()
    assert timer.seconds == 6 * 3600

    box.clock.advance(DAY)  # and no timer counted it
    [tell] = told
    tell()
    assert timer.seconds == 60
    timer.callback()
    await slept.settle()

    assert read_record(tmp_path).at == box.clock.now()
