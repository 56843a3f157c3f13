"""Retention of logs, sign-ins and contacts: at the start, then each night, in short steps."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from appliance.actions.erase_guest import erase_past_guests
from appliance.environment import Environment
from appliance.scheduler import Job
from appliance.store.connection import Reader, Transaction
from appliance.store.erasing import find_past_guests
from appliance.store.retention import (
    BATCH,
    DELIVERIES,
    Key,
    drop_answers,
    drop_attempts,
    drop_deliveries,
    drop_events,
    drop_requests,
    find_answers,
    find_attempts,
    find_cut_of_attempts,
    find_deliveries,
    find_events,
    find_requests,
)
from appliance.store.security_log import drop_security_entries, find_old_security_entries
from appliance.store.sessions import delete_old_sign_ins, has_old_sign_ins
from appliance.store.venue import get_venue
from appliance.upkeep.chores import last_ended_evening_now

DAY_MS = 86_400_000
_PAUSE_SECONDS = 0.02
_GUESTS = 20  # erased in one transaction
_GUESTS_FOUND = 5_000  # at a time: looking for them reads every row of the past

Find = Callable[[Reader], list[Key]]
Drop = Callable[[Transaction, Sequence[Key]], None]


class Retention:
    """Keeps logs within days, rows and megabytes, contacts within days; one environment's."""

    def __init__(
        self, environment: Environment, may_expire: Callable[[], bool] = lambda: True
    ) -> None:
        """`may_expire` says whether the clock is good enough to tell how old something is."""
        self._database = environment.database
        self._settings = environment.settings
        self._may_expire = may_expire
        self._done_at: int | None = None
        self._lock = asyncio.Lock()
        name = f"{environment.name}: retention"
        self.job = Job(name, self._database, self._next_due, self.forget, may_expire)

    async def forget(self) -> None:
        """Forget what is too old. By a doubtful clock nothing is."""
        async with self._lock:  # the night's work asks for it too
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
        await self._all(partial(find_old_security_entries, before=security), drop_security_entries)
        guessed = now - DAY_MS  # after a day nobody has to wait for it any more
        if await self._database.read(has_old_sign_ins, guessed):
            await self._database.write(delete_old_sign_ins, guessed)

    async def _forget_contacts(self) -> None:
        """Name, contacts and notes of evenings that are long past."""
        days = self._settings.retention.contact_days
        while found := await self._database.read(_find_past_guests, days):
            for start in range(0, len(found), _GUESTS):
                await self._database.write(erase_past_guests, found[start : start + _GUESTS])
                await asyncio.sleep(_PAUSE_SECONDS)
            await self._database.cut_log()

    async def _all(self, find: Find, drop: Drop, batch: int = BATCH) -> None:
        """Drop whatever is found, a batch at a time; others write in between."""
        while keys := await self._database.read(find):
            for start in range(0, len(keys), batch):
                await self._database.write(drop, keys[start : start + batch])
                await asyncio.sleep(_PAUSE_SECONDS)


def next_night(reader: Reader, done_at: int | None, hour: int) -> int:
    """When it is next that hour in the venue after `done_at`, in ms since 1970.

    0 when it never was done, or in a future from which the clock was set back.
    """
    if done_at is None or done_at > reader.now + DAY_MS:
        return 0
    return hour_after(done_at, reader.zones.zone(get_venue(reader).time_zone), hour)


def hour_after(instant: int, zone: ZoneInfo, hour: int) -> int:
    """The next time that it is that hour there, in ms since 1970."""
    local = datetime.fromtimestamp(instant / 1000, UTC).astimezone(zone)
    found = local.replace(hour=hour, minute=0, second=0, microsecond=0)
    if found <= local:
        found += timedelta(days=1)
    return round(found.timestamp() * 1000)


def _find_past_guests(reader: Reader, days: int) -> list[str]:
    last: date = last_ended_evening_now(reader) - timedelta(days=days)
    return find_past_guests(reader, last, _GUESTS_FOUND)
