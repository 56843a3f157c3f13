"""The nightly jobs, the backups made between them, and the copies at the backup target.

The nightly jobs run in this order: retention, vacuum, integrity check, backup.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

import apsw

from appliance.backup.catalogue import read_record
from appliance.backup.copies import Copier
from appliance.backup.create import Maker, find_digest
from appliance.box import Box
from appliance.checks.check import DAMAGED, list_observations, observe
from appliance.clock import DAY_MS
from appliance.core.errors import ApiError, OperatorError, Unavailable
from appliance.database.connection import Reader, Transaction
from appliance.database.integrity import list_faults
from appliance.environment import Environment
from appliance.jobs.reservation_states import last_ended_evening_now
from appliance.privacy import erase_past_guests, find_past_guests
from appliance.scheduler import Job, run_in_daemon_thread
from appliance.staff.audit_log import AUDIT_DAYS, drop_audit_entries, find_old_audit_entries
from appliance.staff.sign_in import delete_old_sign_ins
from appliance.venue.model import find_zone, get_venue
from appliance.webhooks import deliveries, delivery_log
from appliance.webhooks.event_list import KEPT_DAYS

# How long logs are kept: webhook deliveries with their attempts, and the responses of those that
# succeeded.
LOG_DAYS, ANSWER_DAYS = 30, 7
ATTEMPT_ROWS, ATTEMPT_BYTES = 100_000, 64_000_000
_PAUSE_SECONDS = 0.02
_GUESTS = 20  # number of guests erased per transaction
_GUESTS_FOUND = 5_000  # guests per search; many, because each search reads all past reservations

Find = Callable[..., list[deliveries.Key]]
Drop = Callable[[Transaction, Sequence[deliveries.Key]], None]


class Retention:
    """Deletes old logs, and erases guests' names, contacts and notes, in one environment.

    The constants above limit the age of logs, and of webhook attempts also the number of rows and
    their total size. The venue's rule `contact_days` limits the age of guests' data.
    """

    def __init__(self, environment: Environment) -> None:
        self._database = environment.database
        self._settings = environment.settings
        self._done_at: int | None = None
        self._lock = asyncio.Lock()
        name = f"{environment.name}: retention"
        self.job = Job(name, self._database, self._next_due, self.forget, needs_clock=True)

    async def forget(self) -> None:
        """Delete data that is too old. Call this only while the clock is believed."""
        async with self._lock:  # both `job` and the nightly jobs call this
            await self._forget_logs()
            await self._forget_contacts()
            self._done_at = self._database.clock.now()

    def _next_due(self, reader: Reader) -> int:
        return next_night(reader, self._done_at, self._settings.backup.hour)

    async def _forget_logs(self) -> None:
        now, find_cut = self._database.clock.now(), delivery_log.find_cut_of_attempts
        cut = await self._database.read(find_cut, ATTEMPT_ROWS, ATTEMPT_BYTES)
        kept = now - LOG_DAYS * DAY_MS
        answers = now - ANSWER_DAYS * DAY_MS
        delete, logs = self._delete, delivery_log
        await delete(logs.find_attempts, logs.drop_attempts, before=max(cut, kept))
        await delete(logs.find_answers, logs.drop_answers, before=answers)
        await delete(logs.find_requests, deliveries.drop_requests, before=answers)
        await delete(logs.find_deliveries, logs.drop_deliveries, logs.DELIVERIES, before=kept)
        events = min(kept, now - KEPT_DAYS * DAY_MS)
        await delete(logs.find_events, logs.drop_events, before=events)
        audit = now - AUDIT_DAYS * DAY_MS
        await delete(find_old_audit_entries, drop_audit_entries, before=audit)
        yesterday = now - DAY_MS  # a failed sign-in delays later attempts for less than a day
        await self._database.write(delete_old_sign_ins, yesterday)

    async def _forget_contacts(self) -> None:
        """Erase guests' names, contacts and notes `contact_days` days after their evening."""
        while guests := await self._database.read(_find_past_guests):
            for start in range(0, len(guests), _GUESTS):
                await self._database.write(erase_past_guests, guests[start : start + _GUESTS])
                await asyncio.sleep(_PAUSE_SECONDS)
            await self._database.cut_log()

    async def _delete(
        self, find: Find, drop: Drop, batch: int = delivery_log.BATCH, **limits: int
    ) -> None:
        """Delete the rows that `find` returns, in batches. Other writes can run between batches."""
        while keys := await self._database.read(find, **limits):
            for start in range(0, len(keys), batch):
                await self._database.write(drop, keys[start : start + batch])
                await asyncio.sleep(_PAUSE_SECONDS)


def next_night(reader: Reader, done_at: int | None, hour: int) -> int:
    """Return the first time after `done_at` at which the venue's clock shows `hour`:00.

    The result is in ms since 1970. It is 0 if `done_at` is None, or if `done_at` is more than a day
    in the future because the clock was set back.
    """
    if done_at is None or done_at > reader.now + DAY_MS:
        return 0
    local = datetime.fromtimestamp(done_at / 1000, find_zone(reader))
    due = local.replace(hour=hour, minute=0, second=0, microsecond=0)
    if due <= local:
        due += timedelta(days=1)
    return round(due.timestamp() * 1000)


def _find_past_guests(reader: Reader) -> list[str]:
    last = last_ended_evening_now(reader) - timedelta(days=get_venue(reader).contact_days)
    return find_past_guests(reader, last, _GUESTS_FOUND)


log = logging.getLogger(__name__)

FIRST_MS = 60_000  # delay after the start, so that the jobs do not slow down the first requests


class NightlyWork:
    """The box's nightly jobs. If the box was off at night, they run after its next start."""

    def __init__(self, box: Box, retentions: Sequence[Retention] = ()) -> None:
        self._box = box
        self._retentions = retentions
        self._first = box.clock.now() + FIRST_MS
        self._vacuumed_at = 0
        self.busy = asyncio.Lock()
        live = box.live.database
        self.job = Job("nightly work", live, self._next_due, self.do_now, first_retry=60.0)

    async def do_now(self) -> None:
        """Run the nightly jobs.

        If a job fails, the others still run, except that a damaged database is not backed up. The
        jobs stay due and are retried until a new backup is made.
        """
        async with self.busy:
            await self._do_all()

    async def _do_all(self) -> None:
        for retention in self._retentions if self._box.clock.is_believed() else ():
            await _try("retention", retention.forget)
        now = self._box.clock.now()
        # Skip the vacuum if this run only retries a failed backup.
        if abs(now - self._vacuumed_at) > DAY_MS // 2:
            results = [await self._vacuum(environment) for environment in self._box.environments]
            self._vacuumed_at = now if all(results) else 0
        faults: list[str] = []
        for environment in self._box.environments:
            faults += await run_in_daemon_thread(partial(list_faults, environment.database.path))
        with suppress(Unavailable):
            await self._box.live.database.write(observe, DAMAGED, faults[0] if faults else "")
        if faults:  # a backup of a damaged database must not replace a good one
            log.error("database: integrity check failed: %s", faults[0].split("\n")[0])
            return
        await _try("backup", partial(_back_up, self._box))

    async def _vacuum(self, environment: Environment) -> bool:
        """Vacuum the database to remove erased data. If that fails, truncate the WAL instead.

        Returns whether the database was vacuumed.
        """
        if await _try(f"vacuum of {environment.name}", environment.database.wipe):
            return True
        log.warning("database: %s was not vacuumed. The next run retries it.", environment.name)
        await _try(f"WAL truncation of {environment.name}", environment.database.cut_log)
        return False

    def _next_due(self, reader: Reader) -> int:
        """Return when the jobs are due next, in ms since 1970: at least 1 min after the start."""
        proven = read_record(self._box.directory.root).at
        # If `_first` is more than 1 min ahead, the clock was set back after the start. Ignore it.
        first = self._first if self._first <= reader.now + FIRST_MS else 0
        return max(next_night(reader, proven, self._box.settings.backup.hour), first)


async def _back_up(box: Box, *, is_frequent: bool = False) -> None:
    """Make a backup. Raises OperatorError if that fails."""
    maker = Maker(box.directory, box.settings, box.clock, box.zones)
    await run_in_daemon_thread(partial(maker.make, is_frequent=is_frequent))


async def _try(name: str, work: Callable[[], Awaitable[object]]) -> object:
    """Run `work` and return its result. If it fails, log the error and return None."""
    try:
        return await work()
    except (ApiError, OperatorError, OSError, apsw.Error) as error:
        log.warning("nightly: %s failed: %s", name, error)
        return None


# Wait 50 times as long as the latest backup took, so that backups run at most 2 % of the time.
_REST = 50


class FrequentBackups:
    """Makes a backup every `backup.every_minutes` minutes if the live database has changed.

    If backups are slow, waits longer, so that they run at most 2 % of the time.
    """

    def __init__(self, box: Box, busy: asyncio.Lock) -> None:
        """`busy` is the lock that prevents the nightly jobs from running at the same time."""
        self._box = box
        self._busy = busy
        self._first = box.clock.now() + FIRST_MS
        self.job = Job(
            "frequent backup", box.live.database, self._next_due, self.back_up,
            lambda: not busy.locked(),
        )  # fmt: skip

    async def back_up(self) -> None:
        """Make a backup. Raises OperatorError if that fails."""
        async with self._busy:
            await _back_up(self._box, is_frequent=True)

    def _next_due(self, reader: Reader) -> int | None:
        """Return when the next backup is due, in ms since 1970.

        Returns None if frequent backups are switched off, or if the nightly jobs have not made the
        first backup yet. When a backup is due, also returns None if nothing has changed since the
        latest backup, or if the database is damaged, because its backup must not replace a good
        one.
        """
        record = read_record(self._box.directory.root)
        minutes = self._box.settings.backup.every_minutes
        if record.latest is None or not minutes:
            return None
        wait = max(minutes * 60_000, round(record.seconds * _REST * 1000))
        due = max(min(record.latest, reader.now) + wait, min(self._first, reader.now + FIRST_MS))
        if due > reader.now:
            return due
        is_damaged = bool(list_observations(reader, DAMAGED))
        return None if is_damaged or find_digest(reader) == record.digest else due


class BackupCopies:
    """Copies each backup to `backup.target`, and once a week makes a trial restore of a copy."""

    def __init__(self, box: Box) -> None:
        self._database = box.live.database
        self._root = box.directory.root
        self._copier = Copier(box.directory, box.settings, box.clock, box.zones)
        self._first = box.clock.now() + FIRST_MS
        self.job = Job("backup copies", self._database, self._next_due, self.copy, first_retry=60.0)

    async def copy(self) -> None:
        """Copy the latest backup to the target, and make a trial restore if one is due.

        Raises OperatorError if that fails.
        """
        await run_in_daemon_thread(self._copier.run)

    def _next_due(self, reader: Reader) -> int | None:
        due = self._copier.next_due()
        if due is None:  # there is no target or no backup
            return None
        return max(due, min(self._first, reader.now + FIRST_MS))
