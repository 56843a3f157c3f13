"""The night's work: due after the latest proof, caught up after a time off, told when it fails."""

from types import SimpleNamespace

import pytest

from appliance.backup.catalogue import Record, read_record, write_record
from appliance.backup.recovery_key import ensure_recovery_key
from appliance.checks.check import DAMAGED, list_observations
from appliance.clock import parse_instant
from appliance.core.data_directory import DataDirectory
from appliance.jobs.nightly import NightlyWork, Retention, next_night
from appliance.scheduler import Scheduler
from tests.unit.backup.making import MASTER_KEY
from tests.unit.jobs.keeping import Timer


@pytest.mark.parametrize(
    ("proven", "due"),
    [
        ("2026-11-21T04:01:00Z", "2026-11-22T04:00:00Z"),
        ("2026-11-21T03:00:00Z", "2026-11-21T04:00:00Z"),
        ("2026-11-01T04:01:00Z", "2026-11-02T04:00:00Z"),
        ("2027-11-21T04:01:00Z", None),
        (None, None),
    ],
)
async def test_a_backup_is_due_at_four_after_the_latest_proof(box, proven, due):
    proven = proven and parse_instant(proven)

    found = box.live.database.peek(next_night, proven, 4)

    assert found == (0 if due is None else parse_instant(due))


@pytest.fixture
def nights(box, tmp_path):
    directory = DataDirectory(tmp_path)
    directory.make_folders()
    directory.master_key_file.write_bytes(MASTER_KEY)
    directory.master_key_file.chmod(0o600)
    return NightlyWork(box)


async def names(box):
    return [each.name for each in await box.live.database.read(list_observations)]


async def test_damage_is_remembered_and_no_backup_is_made_of_it(nights, box, monkeypatch):
    monkeypatch.setattr("appliance.jobs.nightly.list_faults", lambda _: ["page 7 is damaged"])

    await nights.do_now()

    assert await names(box) == [DAMAGED]
    assert read_record(box.live.database.path.parent).at is None


DAY = 86_400


def of(nights, box):
    timer = Timer()
    return timer, Scheduler(box.clock, timer)


async def test_after_a_sleep_of_the_machine_the_night_is_made_up_for_at_once(nights, box, tmp_path):
    timer, scheduler = of(nights, box)
    ensure_recovery_key(DataDirectory(tmp_path))
    write_record(tmp_path, Record(at=box.clock.now()))
    scheduler.start(nights.job)
    await scheduler.settle()
    assert timer.seconds == 9 * 3600  # four in the night of the venue

    box.clock.machine.advance(DAY)  # and no timer counted it
    scheduler.look()
    await scheduler.settle()

    assert read_record(tmp_path).at == box.clock.now()
    await scheduler.close()


async def test_a_night_without_a_backup_is_tried_again_and_each_time_it_waits_longer(
    nights, box, tmp_path
):
    (tmp_path / "backups").rmdir()
    (tmp_path / "backups").write_text("in the way")
    timer, scheduler = of(nights, box)
    scheduler.start(nights.job)
    await scheduler.settle()

    waits = []
    for _ in range(4):
        waits.append(timer.seconds)
        box.clock.machine.advance(timer.seconds)
        timer.callback()
        await scheduler.settle()

    assert waits == [60, 60, 120, 240]
    await scheduler.close()


async def test_the_night_forgets_before_it_vacuums_and_checks_before_it_backs_up(nights, box):
    order = []
    box_of = type(box.live.database)

    class Kept(Retention):
        async def forget(self):
            order.append("forget")

    nights._retentions = [Kept(box.live)]
    with pytest.MonkeyPatch.context() as watching:
        watching.setattr(box_of, "wipe", lambda _: noted(order, "vacuum"))
        watching.setattr(
            "appliance.jobs.nightly.list_faults", lambda _: order.append("check") or []
        )
        maker = "appliance.jobs.nightly.Maker.make"
        watching.setattr(maker, lambda _, **__: order.append("back up"))
        await nights.do_now()

    assert order == ["forget", "vacuum", "vacuum", "check", "check", "back up"]


async def noted(order, step):
    order.append(step)
    return True


async def test_without_room_for_the_vacuum_a_backup_is_made_all_the_same(
    nights, box, monkeypatch, caplog
):
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=0))
    monkeypatch.setattr("appliance.jobs.nightly.Maker.make", lambda _, **__: None)

    await nights.do_now()

    assert "live.db cannot be vacuumed. This needs" in caplog.text
    assert await names(box) == []
