"""Nightly jobs, in this order: retention, vacuum, integrity check, backup."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import apsw

from appliance.alerts import CLOCK_HELD, CLOCK_LEAPT, Alert, drop_alert, list_alerts, put_alert
from appliance.backup.catalogue import DAY_MS, OVERDUE_MS, read_record
from appliance.backup.create import Maker
from appliance.box import Box
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import ApiError, OperatorError
from appliance.core.process import run_in_daemon_thread
from appliance.database.connection import Reader, Transaction
from appliance.database.integrity import forget_copies, list_faults
from appliance.door.signing_keys import find_first_instant
from appliance.environment import Environment
from appliance.jobs.reservation_states import last_ended_evening_now
from appliance.privacy import erase_past_guests, find_past_guests
from appliance.scheduler import Job
from appliance.staff.audit_log import drop_audit_entries, find_old_audit_entries
from appliance.staff.sign_in import delete_old_sign_ins, has_old_sign_ins
from appliance.venue.rows import get_venue
from appliance.webhooks.deliveries import Key, drop_requests
from appliance.webhooks.delivery_log import (
    BATCH,
    DELIVERIES,
    drop_answers,
    drop_attempts,
    drop_deliveries,
    drop_events,
    find_answers,
    find_attempts,
    find_cut_of_attempts,
    find_deliveries,
    find_events,
    find_requests,
)

_PAUSE_SECONDS = 0.02
_GUESTS = 20  # guests erased in one transaction
_GUESTS_FOUND = 5_000  # guests per search, because each search reads all past rows

Find = Callable[[Reader], list[Key]]
Drop = Callable[[Transaction, Sequence[Key]], None]


class Retention:
    """Retention of one environment: limits logs by days, rows and size, contacts by days."""

    def __init__(
        self, environment: Environment, may_expire: Callable[[], bool] = lambda: True
    ) -> None:
        """`may_expire` returns whether the clock is trusted enough to delete data by age."""
        self._database = environment.database
        self._settings = environment.settings
        self._may_expire = may_expire
        self._done_at: int | None = None
        self._lock = asyncio.Lock()
        name = f"{environment.name}: retention"
        self.job = Job(name, self._database, self._next_due, self.forget, may_expire)

    async def forget(self) -> None:
        """Delete data that is too old; nothing while the clock is doubtful."""
        async with self._lock:  # the nightly work calls it too
            if self._may_expire():
                await self._forget_logs()
                await self._forget_contacts()
                self._done_at = self._database.clock.now()

    def _next_due(self, reader: Reader) -> int:
        return next_night(reader, self._done_at, self._settings.backup.hour)

    async def _forget_logs(self) -> None:
        keep, now = self._settings.retention, self._database.clock.now()
        size = keep.attempt_megabytes * 1_000_000
        too_many = await self._database.read(find_cut_of_attempts, keep.attempt_rows, size)
        attempts = max(too_many, now - keep.attempt_days * DAY_MS)
        answers = now - keep.answer_days * DAY_MS
        dead = now - keep.dead_days * DAY_MS
        ended = now - max(keep.attempt_days, keep.answer_days) * DAY_MS
        await self._all(partial(find_attempts, before=attempts), drop_attempts)
        await self._all(partial(find_answers, before=answers), drop_answers)
        await self._all(partial(find_requests, before=answers), drop_requests)
        found = partial(find_deliveries, dead_before=dead, ended_before=ended)
        await self._all(found, drop_deliveries, DELIVERIES)
        await self._all(partial(find_events, before=min(dead, ended)), drop_events)
        security = now - keep.security_days * DAY_MS
        await self._all(partial(find_old_audit_entries, before=security), drop_audit_entries)
        guessed = now - DAY_MS  # failed sign-ins delay new ones for less than a day
        if await self._database.read(has_old_sign_ins, guessed):
            await self._database.write(delete_old_sign_ins, guessed)

    async def _forget_contacts(self) -> None:
        """Erase names, contacts and notes of guests whose evening is older than `contact_days`."""
        days = self._settings.retention.contact_days
        while found := await self._database.read(_find_past_guests, days):
            for start in range(0, len(found), _GUESTS):
                await self._database.write(erase_past_guests, found[start : start + _GUESTS])
                await asyncio.sleep(_PAUSE_SECONDS)
            await self._database.cut_log()

    async def _all(self, find: Find, drop: Drop, batch: int = BATCH) -> None:
        """Drop all that `find` returns, in batches, so that other writes can run in between."""
        while keys := await self._database.read(find):
            for start in range(0, len(keys), batch):
                await self._database.write(drop, keys[start : start + batch])
                await asyncio.sleep(_PAUSE_SECONDS)


def next_night(reader: Reader, done_at: int | None, hour: int) -> int:
    """The next time after `done_at` that it is `hour` at the venue, in ms since 1970.

    0 if `done_at` is None or more than a day in the future, after the clock was set back.
    """
    if done_at is None or done_at > reader.now + DAY_MS:
        return 0
    return hour_after(done_at, reader.zones.zone(get_venue(reader).time_zone), hour)


def hour_after(instant: int, zone: ZoneInfo, hour: int) -> int:
    """The next time after `instant` that it is `hour` in `zone`, in ms since 1970."""
    local = datetime.fromtimestamp(instant / 1000, UTC).astimezone(zone)
    found = local.replace(hour=hour, minute=0, second=0, microsecond=0)
    if found <= local:
        found += timedelta(days=1)
    return round(found.timestamp() * 1000)


def _find_past_guests(reader: Reader, days: int) -> list[str]:
    last: date = last_ended_evening_now(reader) - timedelta(days=days)
    return find_past_guests(reader, last, _GUESTS_FOUND)


log = logging.getLogger(__name__)

NO_BACKUP = "no_backup"
DAMAGED = "database_damaged"
_DOUBTS = {CLOCK_HELD, CLOCK_LEAPT}  # during these alerts nothing is deleted by age
_FIRST_MS = 60_000  # delay after a start, so that requests are served first
_COPIES_MS = 14 * DAY_MS


class NightlyWork:
    """The nightly work of the box. Work missed while the box was off runs after the start."""

    def __init__(
        self, box: Box, directory: DataDirectory, retentions: Sequence[Retention] = ()
    ) -> None:
        self._box = box
        self._directory = directory
        self._retentions = retentions
        self._first = box.clock.now() + _FIRST_MS
        self._vacuumed_at = 0
        live = box.live.database
        self.jobs = (
            Job("nightly work", live, self._next_due, self.do_now),
            # A separate job: the nightly work may hang on a volume that does not respond.
            Job("backup age check", live, self._overdue_at, self.note_overdue),
        )

    async def do_now(self) -> None:
        """Run the nightly work. Failures raise alerts; a damaged database prevents the backup.

        Other steps run regardless. Without a new backup the job stays due and is retried.
        """
        for retention in self._retentions:
            await _try("retention", retention.forget)
        now = self._box.clock.now()
        if abs(now - self._vacuumed_at) > DAY_MS // 2:  # not on each retry of a failed backup
            done = [await self._vacuum(environment) for environment in self._box.environments]
            self._vacuumed_at = now if all(done) else 0
        faults: list[str] = []
        for environment in self._box.environments:
            faults += await run_in_daemon_thread(partial(list_faults, environment.database.path))
        sentence = "a database is damaged: run venuebox doctor, then venuebox restore --latest"
        await self._note(DAMAGED, sentence if faults else "")
        if faults:  # do not rotate good backups out for a damaged database
            log.error("database: integrity check failed: %s", faults[0].split("\n")[0])
            return
        box = self._box
        maker = Maker(self._directory, box.settings, box.clock, box.tokens, box.zones)
        trouble = ""
        try:
            await run_in_daemon_thread(maker.make)
            noted = await box.live.database.read(list_alerts)
            if not _DOUBTS & {each.name for each in noted}:
                shelf = self._directory.root / "backups"
                await run_in_daemon_thread(
                    partial(forget_copies, shelf, box.clock.now() - _COPIES_MS)
                )
        except OperatorError as error:
            trouble = str(error)
            log.warning("backup: nightly backup failed: %s", trouble)
        await self._note(NO_BACKUP, f"no backup was made: {trouble}" if trouble else "")

    async def _vacuum(self, environment: Environment) -> bool:
        """Wipe erased data from the database file; if that fails, at least truncate the WAL."""
        if await _try(f"vacuum of {environment.name}", environment.database.wipe):
            return True
        log.warning("database: %s not vacuumed; retry in the next run", environment.name)
        await _try(f"WAL truncation of {environment.name}", environment.database.cut_log)
        return False

    def _next_due(self, reader: Reader) -> int:
        """The first backup hour after the latest verified backup, at least 1 min after start."""
        proven = read_record(self._directory.root).at
        # A first run further ahead means that the clock was set back after the start.
        first = self._first if self._first <= reader.now + _FIRST_MS else 0
        return max(next_night(reader, proven, self._box.settings.backup.hour), first)

    def _overdue_at(self, reader: Reader) -> int | None:
        """When to raise the overdue alert, in ms since 1970; 0 to drop it after a manual backup.

        A box without any backup is treated as if one had been made when it was created.
        """
        record = read_record(self._directory.root)
        since = record.at or find_first_instant(reader)
        late_at = None if since is None else since + OVERDUE_MS
        if all(each.name != NO_BACKUP for each in list_alerts(reader)):
            return late_at
        is_late = late_at is not None and late_at <= reader.now
        return None if is_late or record.trouble else 0

    async def note_overdue(self) -> None:
        """Raise the alert if the backup is overdue, even if none was tried; else drop it."""
        due = await self._box.live.database.read(self._overdue_at)
        trouble = read_record(self._directory.root).trouble
        why = f" ({trouble})" if trouble else ""
        sentence = f"no backup was made for more than 30 hours{why}"
        await self._note(NO_BACKUP, sentence if due else "")

    async def _note(self, name: str, sentence: str) -> None:
        try:
            await self._box.live.database.write(_write_condition, name, sentence)
        except ApiError:
            log.warning("nightly: alert %s not written: %s", name, sentence)


async def _try(what: str, work: Callable[[], Awaitable[object]]) -> object:
    """Run `work` and return its result; log the error and return None if it fails."""
    try:
        return await work()
    except (ApiError, OperatorError, OSError, apsw.Error) as trouble:
        log.warning("nightly: %s failed: %s", what, trouble)
        return None


def _write_condition(tx: Transaction, name: str, sentence: str) -> None:
    if sentence:
        put_alert(tx, Alert(name, "", tx.now, sentence))
    else:
        drop_alert(tx, name, "")
