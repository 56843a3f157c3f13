"""Retention of logs and sign-ins: once at the start, then each night, in steps nobody notices."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from appliance.accidents import log_accident
from appliance.clock import Clock
from appliance.clock_steps import WatchClockSteps
from appliance.environment import Environment
from appliance.errors import Refusal
from appliance.store.connection import Reader, Transaction
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
from appliance.upkeep.upkeep import Alarm, CallLater

log = logging.getLogger(__name__)

DAY_MS = 86_400_000
_HOUR = 4  # in the night of the venue, when nobody books
_PAUSE_SECONDS = 0.02
_AGAIN_SECONDS = 3600.0
_DAY_SECONDS = 86_400.0

Find = Callable[[Reader], list[Key]]
Drop = Callable[[Transaction, Sequence[Key]], None]


class Retention:
    """Keeps the log within its days, rows and megabytes; by a doubtful clock it keeps all."""

    def __init__(
        self,
        environment: Environment,
        clock: Clock,
        may_expire: Callable[[], bool],
        call_later: CallLater | None = None,
        watch_clock: WatchClockSteps | None = None,
    ) -> None:
        """`may_expire` says whether the clock is good enough to tell how old something is.

        `watch_clock` as of Upkeep.
        """
        self._database = environment.database
        self._settings = environment.settings.retention
        self._clock = clock
        self._may_expire = may_expire
        self._call_later = call_later
        self._watch_clock = watch_clock
        self._stop_watching: Callable[[], None] | None = None
        self._alarm: Alarm | None = None
        self._due = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        """Begin beside the first requests."""
        if self._watch_clock is not None:
            self._stop_watching = self._watch_clock(self._look_anew)
        self._begin()

    async def close(self) -> None:
        """Stop after the step that is being written."""
        self._closed = True
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        if self._alarm is not None:
            self._alarm.cancel()
        await self.settle()

    async def settle(self) -> None:
        """Wait until nothing is being done."""
        if self._task is not None:
            await self._task

    def _look_anew(self) -> None:
        """The clock was set, the machine slept, or the clock is trusted again."""
        if self._alarm is not None and not self._closed:  # else it reckons when it has done
            self._alarm.cancel()
            self._set(min(max((self._due - self._clock.now()) / 1000, 0.0), _DAY_SECONDS))

    def _set(self, seconds: float) -> None:
        later = self._call_later or asyncio.get_running_loop().call_later
        self._alarm = later(seconds, self._begin)

    def _begin(self) -> None:
        self._alarm = None
        self._task = asyncio.get_running_loop().create_task(self._work(), name="retention")

    async def _work(self) -> None:
        wait = _AGAIN_SECONDS
        try:
            if self._may_expire():
                await self._forget()
                wait = await self._database.read(seconds_until_the_night)
        except Refusal as refusal:
            log.warning("retention waits an hour: %s", refusal)
        except Exception as error:  # noqa: BLE001 - it tries again in an hour
            log_accident("retention", error)
        if not self._closed:
            self._due = self._clock.now() + round(wait * 1000)
            self._set(wait)

    async def _forget(self) -> None:
        keep, now = self._settings, self._clock.now()
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

    async def _all(self, find: Find, drop: Drop, batch: int = BATCH) -> None:
        """Drop whatever is found, a batch at a time; others write in between."""
        keys: list[Key] = []
        while not self._closed:
            if not keys:
                keys = await self._database.read(find)
            if not keys:
                return
            await self._database.write(drop, keys[:batch])
            del keys[:batch]
            await asyncio.sleep(_PAUSE_SECONDS)


def seconds_until_the_night(reader: Reader) -> float:
    """Seconds until it is next four o'clock in the venue."""
    zone = reader.zones.zone(get_venue(reader).time_zone)
    now = datetime.fromtimestamp(reader.now / 1000, UTC)
    night = now.astimezone(zone).replace(hour=_HOUR, minute=0, second=0, microsecond=0)
    if night <= now:
        night += timedelta(days=1)
    return (night - now).total_seconds()
