"""Backups between two nights: after a change only, as rarely as they are slow, never of damage."""

from dataclasses import replace

import pytest

from appliance.alerts import Alert, list_alerts, put_alert
from appliance.backup.catalogue import list_backups, read_record, write_record
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.jobs.backups import FrequentBackups
from appliance.jobs.nightly import DAMAGED, NO_BACKUP, NightlyWork
from appliance.reservations.create import enter_by_staff
from tests.builders import a_booking
from tests.conftest import with_settings
from tests.unit.backup.making import MASTER_KEY

MINUTE = 60  # seconds, as the clock advances


@pytest.fixture
async def frequent(box, tmp_path):
    """Frequent backups of a box whose first nightly backup is made."""
    directory = DataDirectory(tmp_path)
    directory.make_folders()
    directory.master_key_file.write_bytes(MASTER_KEY)
    directory.master_key_file.chmod(0o600)
    night = NightlyWork(box, directory)
    await night.do_now()
    write_record(tmp_path, replace(read_record(tmp_path), seconds=1.0))
    return FrequentBackups(box, directory, night.busy)


async def due_in(frequent, box):
    """Return the seconds until a backup is due, or None."""
    due = await box.live.database.read(frequent.job.next_due)
    return None if due is None else (due - box.clock.now()) / 1000


def kept(tmp_path):
    return len(list_backups(tmp_path / "backups"))


async def book(box):
    await box.live.database.write(enter_by_staff, a_booking(), actor="staff:1")


@pytest.mark.proves("S26")
async def test_a_booking_is_in_a_backup_a_quarter_of_an_hour_after_the_last_one(
    frequent, box, tmp_path
):
    proven = read_record(tmp_path).at
    await book(box)
    assert await due_in(frequent, box) == 15 * MINUTE
    box.clock.advance(15 * MINUTE)
    assert await due_in(frequent, box) == 0

    await frequent.back_up()

    record = read_record(tmp_path)
    assert (record.at, record.latest, record.reservations) == (proven, box.clock.now(), 1)
    assert kept(tmp_path) == 2
    box.clock.advance(15 * MINUTE)
    assert await due_in(frequent, box) is None


async def test_without_a_change_nothing_is_written(frequent, box):
    box.clock.advance(15 * MINUTE)
    await box.live.database.write(put_alert, Alert("box_offline", "", 0, "it is"))

    assert await due_in(frequent, box) is None


async def test_a_slow_backup_is_made_so_rarely_that_it_costs_a_fiftieth(frequent, box, tmp_path):
    write_record(tmp_path, replace(read_record(tmp_path), seconds=60.0))
    await book(box)

    assert await due_in(frequent, box) == 50 * MINUTE


@pytest.mark.parametrize("minutes", [0, 40])
async def test_the_owner_sets_the_minutes_or_none(frequent, box, minutes):
    frequent._box = replace(box, settings=with_settings(backup={"every_minutes": minutes}))
    await book(box)

    assert await due_in(frequent, box) == (minutes * MINUTE or None)


async def test_a_damaged_database_is_not_backed_up(frequent, box):
    await book(box)
    await box.live.database.write(put_alert, Alert(DAMAGED, "", 0, "it is"))
    box.clock.advance(15 * MINUTE)

    assert await due_in(frequent, box) is None


async def test_one_that_fails_is_an_alert_until_one_is_made(frequent, box, tmp_path):
    await book(box)
    (tmp_path / "backups").rename(tmp_path / "away")
    (tmp_path / "backups").write_text("in the way")

    with pytest.raises(OperatorError):
        await frequent.back_up()
    assert [alert.name for alert in await box.live.database.read(list_alerts)] == [NO_BACKUP]

    (tmp_path / "backups").unlink()
    await frequent.back_up()
    assert await box.live.database.read(list_alerts) == []


async def test_it_does_not_run_while_the_nightly_jobs_do(frequent):
    async with frequent._busy:
        assert not frequent.job.may_run()
    assert frequent.job.may_run()


async def test_after_the_clock_was_set_back_it_is_still_made(frequent, box):
    await book(box)
    box.clock.advance(-86_400)

    assert await due_in(frequent, box) == 15 * MINUTE
