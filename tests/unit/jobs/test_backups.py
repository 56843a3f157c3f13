"""Frequent backups and copies to a target: made after a change, and reported if they fail."""

from dataclasses import replace

import pytest

from appliance.backup.catalogue import read_record, write_record
from appliance.backup.copies import Copier, CopyRecord
from appliance.checks.check import DAMAGED, RELAY_AWAY, observe
from appliance.core.data_directory import DataDirectory
from appliance.jobs.nightly import (
    BackupCopies,
    FrequentBackups,
    NightlyWork,
)
from appliance.reservations.create import enter_by_staff
from tests.builders import a_booking
from tests.conftest import with_settings
from tests.unit.backup.making import MASTER_KEY

MINUTE = 60  # seconds, as the clock advances


@pytest.fixture
async def frequent(box, tmp_path):
    """The frequent backups of a box that has made its first nightly backup."""
    directory = DataDirectory(tmp_path)
    directory.make_folders()
    directory.master_key_file.write_bytes(MASTER_KEY)
    directory.master_key_file.chmod(0o600)
    night = NightlyWork(box)
    await night.do_now()
    write_record(tmp_path, replace(read_record(tmp_path), seconds=1.0))
    return FrequentBackups(box, night.busy)


async def due_in(frequent, box):
    """Return the seconds until a backup is due, or None."""
    due = await box.live.database.read(frequent.job.next_due)
    return None if due is None else (due - box.clock.now()) / 1000


async def book(box):
    await box.live.database.write(enter_by_staff, a_booking(), actor="staff:1")


async def test_a_booking_is_backed_up_within_five_minutes_of_the_last_backup(
    frequent, box, tmp_path
):
    proven = read_record(tmp_path).at
    await book(box)
    assert await due_in(frequent, box) == 5 * MINUTE
    box.clock.machine.advance(5 * MINUTE)
    assert await due_in(frequent, box) == 0

    await frequent.back_up()

    record = read_record(tmp_path)
    assert (record.at, record.latest, record.reservations) == (proven, box.clock.now(), 1)
    box.clock.machine.advance(5 * MINUTE)
    assert await due_in(frequent, box) is None


async def test_no_backup_is_written_without_a_change(frequent, box):
    box.clock.machine.advance(5 * MINUTE)
    await box.live.database.write(observe, RELAY_AWAY, "x")

    assert await due_in(frequent, box) is None


async def test_slow_backups_run_so_rarely_that_they_take_at_most_a_fiftieth_of_the_time(
    frequent, box, tmp_path
):
    write_record(tmp_path, replace(read_record(tmp_path), seconds=60.0))
    await book(box)

    assert await due_in(frequent, box) == 50 * MINUTE


@pytest.mark.parametrize("minutes", [0, 40])
async def test_the_owner_can_change_the_backup_interval_or_turn_it_off(frequent, box, minutes):
    frequent._box = replace(box, settings=with_settings(backup={"every_minutes": minutes}))
    await book(box)

    assert await due_in(frequent, box) == (minutes * MINUTE or None)


async def test_a_damaged_database_is_not_backed_up(frequent, box):
    await book(box)
    await box.live.database.write(observe, DAMAGED, "it is")
    box.clock.machine.advance(5 * MINUTE)

    assert await due_in(frequent, box) is None


async def test_frequent_backups_pause_during_the_nightly_work(frequent):
    async with frequent._busy:
        assert not frequent.job.may_run()
    assert frequent.job.may_run()


async def test_a_backup_is_still_made_after_the_clock_was_set_back(frequent, box):
    await book(box)
    box.clock.machine.advance(-86_400)

    assert await due_in(frequent, box) == 5 * MINUTE


DAY = 86_400


@pytest.fixture
def copies(frequent, box, tmp_path, monkeypatch):
    """The job that copies to a target, and a list with the error of each attempt, or None."""
    settings = with_settings(backup={"target": "s3://bucket/backups"})
    job, raised = BackupCopies(replace(box, settings=settings)), []

    def run(self, *, must_try):
        if raised[-1]:
            raise raised[-1]
        self._remember(CopyRecord("s3://bucket/backups", read_record(tmp_path).file))

    monkeypatch.setattr(Copier, "_run", run)
    return job, raised


async def test_each_new_backup_is_queued_for_copying(copies, frequent, box):
    job, raised = copies
    raised.append(None)
    box.clock.machine.advance(MINUTE)
    assert await due_in(job, box) <= 0
    await job.copy()

    await book(box)
    await frequent.back_up()

    assert await due_in(job, box) <= 0
