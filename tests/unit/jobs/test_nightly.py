"""The night's work: due after the latest proof, caught up after a time off, told when it fails."""

import asyncio
from types import SimpleNamespace

import pytest

from appliance.alerts import list_alerts
from appliance.backup.catalogue import Record, read_record, write_record
from appliance.backup.recovery_key import ensure_recovery_key
from appliance.clock import parse_instant
from appliance.core.data_directory import DataDirectory
from appliance.jobs.nightly import DAMAGED, NO_BACKUP, NightlyWork, Retention, next_night
from appliance.scheduler import Scheduler
from tests.unit.backup.making import MASTER_KEY
from tests.unit.jobs.keeping import Timer
from tests.waiting import until


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
    return [condition.name for condition in await box.live.database.read(list_alerts)]


async def test_a_backup_that_fails_is_a_condition_until_one_is_made(nights, box, tmp_path):
    (tmp_path / "backups").rmdir()
    (tmp_path / "backups").write_text("in the way")

    await nights.do_now()
    assert await names(box) == [NO_BACKUP]

    (tmp_path / "backups").unlink()
    await nights.do_now()
    assert await names(box) == []


async def test_damage_is_a_condition_and_no_backup_is_made_of_it(nights, box, monkeypatch):
    monkeypatch.setattr("appliance.jobs.nightly.list_faults", lambda _: ["page 7 is damaged"])

    await nights.do_now()

    assert await names(box) == [DAMAGED]
    assert read_record(box.live.database.path.parent).at is None


DAY = 86_400


async def test_where_the_night_hangs_it_is_said_all_the_same(nights, box, tmp_path):
    _, scheduler = of(nights, box)
    write_record(tmp_path, Record(at=box.clock.now()))
    hanging = asyncio.Event()
    nights.jobs[0].run = hanging.wait
    scheduler.start(*nights.jobs)
    await look(scheduler, nights)

    box.clock.machine.advance(DAY)
    await look(scheduler, nights)
    assert await names(box) == []
    assert nights.jobs[0].task is not None

    box.clock.machine.advance(DAY)
    await look(scheduler, nights)
    [condition] = await box.live.database.read(list_alerts)
    assert (condition.name, condition.since) == (NO_BACKUP, box.clock.now())

    write_record(tmp_path, Record(at=box.clock.now()))  # one made by hand
    await look(scheduler, nights)
    assert await names(box) == []
    await scheduler.close()


def of(nights, box):
    timer = Timer()
    return timer, Scheduler(box.clock, timer)


async def look(scheduler, nights):
    """All but the night's work, which may hang."""
    scheduler.look()
    await until(lambda: not scheduler._looking and not nights.jobs[1].task)


async def test_after_a_sleep_of_the_machine_the_night_is_made_up_for_at_once(nights, box, tmp_path):
    timer, scheduler = of(nights, box)
    ensure_recovery_key(DataDirectory(tmp_path))
    write_record(tmp_path, Record(at=box.clock.now()))
    scheduler.start(*nights.jobs)
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
    scheduler.start(nights.jobs[0])
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
