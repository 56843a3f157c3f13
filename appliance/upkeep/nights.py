"""Each night, in this order: forget what is old, vacuum, check every page, make a backup."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import apsw

from appliance.actions.confirm_clock import CLOCK_LEAPT
from appliance.backup.making import Maker
from appliance.backup.shelf import Record, read_record
from appliance.box import Box
from appliance.clock import Clock
from appliance.data_directory import DataDirectory
from appliance.environment import Environment
from appliance.errors import Refusal, Trouble
from appliance.scheduler import Job
from appliance.store.conditions import Condition, drop_condition, list_conditions, put_condition
from appliance.store.connection import Reader, Transaction
from appliance.store.signing_keys import find_first_instant
from appliance.store.snapshot import list_faults
from appliance.store.upgrade_copies import forget_copies
from appliance.upkeep.beside import run_beside
from appliance.upkeep.retention import DAY_MS, Retention, next_night
from appliance.webhooks.conditions import CLOCK_HELD

log = logging.getLogger(__name__)

NO_BACKUP = "no_backup"
DAMAGED = "database_damaged"
_DOUBTS = {CLOCK_HELD, CLOCK_LEAPT}  # by such a clock nothing is old enough to go
_FIRST_MS = 60_000  # after a start: the first requests go first
_OVERDUE_MS = DAY_MS + 6 * 3_600_000
_COPIES_MS = 14 * DAY_MS


class Nights:
    """The night's work of the box. What was missed while it was off is done after the start."""

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
            Job("the night's work", live, self._next_due, self.do_now),
            # On its own: the night's work may hang, on a volume that does not answer.
            Job("a look for an overdue backup", live, self._overdue_at, self.note_overdue),
        )

    async def do_now(self) -> None:
        """What is wrong becomes a condition. A step that fails stops none but those it would spoil.

        Without a new backup the job stays due, and is retried.
        """
        for retention in self._retentions:
            await _try("forgetting what is old", retention.forget)
        now = self._box.clock.now()
        if abs(now - self._vacuumed_at) > DAY_MS // 2:  # not with each retry of a failed backup
            done = [await self._vacuum(environment) for environment in self._box.environments]
            self._vacuumed_at = now if all(done) else 0
        faults: list[str] = []
        for environment in self._box.environments:
            faults += await run_beside(partial(list_faults, environment.database.path))
        sentence = "a database is damaged: run venuebox doctor, then venuebox restore --latest"
        await self._note(DAMAGED, sentence if faults else "")
        if faults:  # a damaged database is not copied over good ones
            log.error("night: the check found damage: %s", faults[0].split("\n")[0])
            return
        box = self._box
        maker = Maker(self._directory, box.settings, box.clock, box.tokens, box.zones)
        trouble = ""
        try:
            await run_beside(maker.make)
            noted = await box.live.database.read(list_conditions)
            if not _DOUBTS & {each.name for each in noted}:
                shelf = self._directory.root / "backups"
                await run_beside(partial(forget_copies, shelf, box.clock.now() - _COPIES_MS))
        except Trouble as error:
            trouble = str(error)
            log.warning("night: no backup: %s", trouble)
        await self._note(NO_BACKUP, f"no backup was made: {trouble}" if trouble else "")

    async def _vacuum(self, environment: Environment) -> bool:
        """Whether nothing of what was erased is left in the file; else at least not in the log."""
        if await _try(f"the vacuum of {environment.name}", environment.database.wipe):
            return True
        log.warning("night: %s was not vacuumed, tried again with the next work", environment.name)
        await _try(f"cutting the log of {environment.name}", environment.database.cut_log)
        return False

    def _next_due(self, reader: Reader) -> int:
        """The hour that follows the latest proof, and a minute after the start at the earliest."""
        proven = read_record(self._directory.root).at
        # A start that lies ahead by more is one before which the clock was set back.
        first = self._first if self._first <= reader.now + _FIRST_MS else 0
        return max(next_night(reader, proven, self._box.settings.backup.hour), first)

    def _overdue_at(self, reader: Reader) -> int | None:
        """When to note that no backup was made; 0 where one was made by hand since the note.

        A box that never had a backup has as long as if it had been made with one.
        """
        record = read_record(self._directory.root)
        since = record.at or find_first_instant(reader)
        late_at = None if since is None else since + _OVERDUE_MS
        if all(each.name != NO_BACKUP for each in list_conditions(reader)):
            return late_at
        is_late = late_at is not None and late_at <= reader.now
        return None if is_late or record.trouble else 0

    async def note_overdue(self) -> None:
        """Note that there is no backup where none was even tried, or take the note back."""
        due = await self._box.live.database.read(self._overdue_at)
        trouble = read_record(self._directory.root).trouble
        why = f" ({trouble})" if trouble else ""
        sentence = f"no backup was made for more than 30 hours{why}"
        await self._note(NO_BACKUP, sentence if due else "")

    async def _note(self, name: str, sentence: str) -> None:
        try:
            await self._box.live.database.write(_write_condition, name, sentence)
        except Refusal:
            log.warning("night: %s", sentence)


async def _try(what: str, work: Callable[[], Awaitable[object]]) -> object:
    """What the work returns; None where it does not succeed."""
    try:
        return await work()
    except (Refusal, Trouble, OSError, apsw.Error) as trouble:
        log.warning("night: %s did not succeed: %s", what, trouble)
        return None


def is_overdue(record: Record, clock: Clock) -> bool:
    """Whether the latest proven backup is older than a night and some hours, or there is none."""
    return record.at is None or clock.now() - record.at > _OVERDUE_MS


def _write_condition(tx: Transaction, name: str, sentence: str) -> None:
    if sentence:
        put_condition(tx, Condition(name, "", tx.now, sentence))
    else:
        drop_condition(tx, name, "")
