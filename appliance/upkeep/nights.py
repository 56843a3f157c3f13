"""Each night: every page of both databases is read, and a backup is made and proven."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from appliance.accidents import log_accident
from appliance.actions.confirm_clock import CLOCK_LEAPT
from appliance.backup.making import Maker
from appliance.backup.shelf import Record, read_record
from appliance.box import Box
from appliance.clock import Clock
from appliance.clock_steps import WatchClockSteps
from appliance.data_directory import DataDirectory
from appliance.errors import Refusal, Trouble
from appliance.store.conditions import (
    Condition,
    drop_condition,
    list_conditions,
    put_condition,
)
from appliance.store.connection import Reader, Transaction
from appliance.store.signing_keys import find_first_instant
from appliance.store.snapshot import list_faults
from appliance.store.upgrade_copies import forget_copies
from appliance.store.venue import get_venue
from appliance.upkeep.beside import run_beside
from appliance.upkeep.upkeep import Alarm, CallLater
from appliance.webhooks.conditions import CLOCK_HELD

log = logging.getLogger(__name__)

NO_BACKUP = "no_backup"
DAMAGED = "database_damaged"
_DOUBTS = {CLOCK_HELD, CLOCK_LEAPT}  # by such a clock nothing is old enough to go
_DAY_MS = 86_400_000
_FIRST_SECONDS = 60.0  # after a start: the first requests go first
_AGAIN_SECONDS = 3600.0
_LONGEST_SECONDS = 6 * 3600.0  # the clock may be set while it sleeps
_OVERDUE_MS = _DAY_MS + 6 * 3_600_000
_COPIES_MS = 14 * _DAY_MS


class Nights:
    """One timer for the box. What was missed while it was off is done a minute after the start."""

    def __init__(
        self,
        box: Box,
        directory: DataDirectory,
        call_later: CallLater | None = None,
        watch_clock: WatchClockSteps | None = None,
    ) -> None:
        """`call_later` is the event loop's own unless a test owns the time.

        `watch_clock` as of Upkeep.
        """
        self._box = box
        self._directory = directory
        self._call_later = call_later
        self._watch_clock = watch_clock
        self._stop_watching: Callable[[], None] | None = None
        self._alarm: Alarm | None = None
        self._watch: Alarm | None = None
        self._noting: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        """Begin a minute from now, or when the night comes."""
        self._set(_FIRST_SECONDS)
        if self._watch_clock is not None:
            self._stop_watching = self._watch_clock(self._look_soon)
        self._watch_later()

    async def close(self) -> None:
        """Stop; a backup that is being made is left unfinished, and made after the next start."""
        self._closed = True
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        for alarm in (self._alarm, self._watch):
            if alarm is not None:
                alarm.cancel()
        for task in (self._task, self._noting):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def settle(self) -> None:
        """Wait until nothing is being done."""
        for task in (self._task, self._noting):
            if task is not None:
                await task

    async def look_whether_overdue(self) -> None:
        """Note that there is no backup where none was even tried: a volume may hang for ever.

        A box that never had one has as long as if it had been made with one. Where one was
        made by hand the note is taken back.
        """
        record, database = read_record(self._directory.root), self._box.live.database
        since = record.at or await database.read(find_first_instant)
        is_late = since is not None and self._box.clock.now() - since > _OVERDUE_MS
        is_noted = NO_BACKUP in await self._list_noted()
        if is_late and not is_noted:
            why = f" ({record.trouble})" if record.trouble else ""
            await self._note(NO_BACKUP, f"no backup was made for more than 30 hours{why}")
        elif is_noted and not is_late and not record.trouble:
            await self._note(NO_BACKUP, "")

    def _look_soon(self) -> None:
        """The clock was set or the machine slept, which the timer does not count."""
        if self._alarm is not None:  # else it reckons when it has done
            self._alarm.cancel()
            self._set(_FIRST_SECONDS)

    def _look(self) -> None:
        self._alarm = None
        self._task = asyncio.get_running_loop().create_task(self._work(), name="nights")

    async def _work(self) -> None:
        wait = _AGAIN_SECONDS
        try:
            seconds = await self._box.live.database.read(self._until_due)
            if seconds <= 0:
                await self.do_now()
                seconds = await self._box.live.database.read(self._until_due)
            wait = max(min(seconds, _LONGEST_SECONDS), 1.0) if seconds > 0 else _AGAIN_SECONDS
        except Refusal as refusal:
            log.warning("the night's work waits an hour: %s", refusal)
        except Exception as error:  # noqa: BLE001 - it is tried again in an hour
            log_accident("the night's work", error)
        self._set(wait)

    async def do_now(self) -> None:
        """Check both databases and make a backup; what is wrong becomes a condition."""
        faults: list[str] = []
        for environment in self._box.environments:
            faults += await run_beside(partial(list_faults, environment.database.path))
        sentence = "a database is damaged: run venuebox doctor, then venuebox restore --latest"
        await self._note(DAMAGED, sentence if faults else "")
        if faults:  # a damaged database is not copied over good ones
            log.error("the night's check found damage: %s", faults[0].split("\n")[0])
            return
        box = self._box
        maker = Maker(self._directory, box.settings, box.clock, box.tokens, box.zones)
        trouble = ""
        try:
            await run_beside(maker.make)
            if not _DOUBTS & await self._list_noted():
                shelf = self._directory.root / "backups"
                await run_beside(partial(forget_copies, shelf, box.clock.now() - _COPIES_MS))
        except Trouble as error:
            trouble = str(error)
            log.warning("no backup: %s", trouble)
        await self._note(NO_BACKUP, f"no backup was made: {trouble}" if trouble else "")

    async def _list_noted(self) -> set[str]:
        return {each.name for each in await self._box.live.database.read(list_conditions)}

    async def _note(self, name: str, sentence: str) -> None:
        try:
            await self._box.live.database.write(_write_condition, name, sentence)
        except Refusal:
            log.warning("%s", sentence)

    def _until_due(self, reader: Reader) -> float:
        """Seconds until the next backup is due; 0 or less when it is."""
        zone = reader.zones.zone(get_venue(reader).time_zone)
        record, now = read_record(self._directory.root), self._box.clock.now()
        return seconds_until_due(record, now, zone, self._box.settings.backup.hour)

    def _watch_later(self) -> None:
        if not self._closed:
            later = self._call_later or asyncio.get_running_loop().call_later
            self._watch = later(_AGAIN_SECONDS, self._look_whether_overdue)

    def _look_whether_overdue(self) -> None:
        self._noting = asyncio.get_running_loop().create_task(self._watch_over(), name="overdue")

    async def _watch_over(self) -> None:
        try:
            await self.look_whether_overdue()
        except Refusal as refusal:
            log.warning("whether a backup is overdue is looked at in an hour: %s", refusal)
        except Exception as error:  # noqa: BLE001 - it is looked at again in an hour
            log_accident("the look at the backups", error)
        self._watch_later()

    def _set(self, seconds: float) -> None:
        if not self._closed:
            later = self._call_later or asyncio.get_running_loop().call_later
            self._alarm = later(seconds, self._look)


def seconds_until_due(record: Record, now: int, zone: ZoneInfo, hour: int) -> float:
    """Until the hour that follows the latest proof; a proof in the future is a clock set back."""
    if record.at is None or record.at > now + _DAY_MS:
        return 0.0
    proven = datetime.fromtimestamp(record.at / 1000, UTC).astimezone(zone)
    night = proven.replace(hour=hour, minute=0, second=0, microsecond=0)
    if night <= proven:
        night += timedelta(days=1)
    return night.timestamp() - now / 1000


def is_overdue(record: Record, clock: Clock) -> bool:
    """Whether the latest proven backup is older than a night and some hours, or there is none."""
    return record.at is None or clock.now() - record.at > _OVERDUE_MS


def _write_condition(tx: Transaction, name: str, sentence: str) -> None:
    if sentence:
        put_condition(tx, Condition(name, "", tx.now, sentence))
    else:
        drop_condition(tx, name, "")
