"""Nightly work: when it is due, how it catches up, and how failures are reported."""

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
async def test_the_nightly_backup_is_due_at_four_after_the_latest_verified_one(box, proven, due):
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


async def test_a_damaged_database_is_recorded_and_not_backed_up(nights, box, monkeypatch):
    monkeypatch.setattr("appliance.jobs.nightly.list_faults", lambda _: ["page 7 is damaged"])

    await nights.do_now()

    assert await names(box) == [DAMAGED]
    assert read_record(box.live.database.path.parent).at is None


DAY = 86_400


def of(nights, box):
    timer = Timer()
    return timer, Scheduler(box.clock, timer)


async def test_nightly_work_missed_while_the_machine_slept_runs_on_waking(nights, box, tmp_path):
    timer, scheduler = of(nights, box)
    ensure_recovery_key(DataDirectory(tmp_path))
    write_record(tmp_path, Record(at=box.clock.now()))
    scheduler.start(nights.job)
    await scheduler.settle()
    assert timer.seconds == 9 * 3600  # four in the morning, venue time

    box.clock.machine.advance(DAY)  # no timer ran during this time
    scheduler.look()
    await scheduler.settle()

    assert read_record(tmp_path).at == box.clock.now()
    await scheduler.close()


async def test_a_failed_nightly_backup_is_retried_at_growing_intervals(nights, box, tmp_path):
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


async def test_nightly_work_runs_retention_before_vacuum_and_the_check_before_the_backup(
    nights, box
):
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


async def test_a_backup_is_made_even_without_disk_space_for_the_vacuum(
    nights, box, monkeypatch, caplog
):
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=0))
    monkeypatch.setattr("appliance.jobs.nightly.Maker.make", lambda _, **__: None)

    await nights.do_now()

    assert "live.db cannot be vacuumed. This needs" in caplog.text
    assert await names(box) == []
