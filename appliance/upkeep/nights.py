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
from appliance.errors import Refusal, Trouble
from appliance.scheduler import Job
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
        for environment in self._box.environments:
            await _try(f"the vacuum of {environment.name}", environment.database.wipe)
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
            if not _DOUBTS & await self._list_noted():
                shelf = self._directory.root / "backups"
                await run_beside(partial(forget_copies, shelf, box.clock.now() - _COPIES_MS))
        except Trouble as error:
            trouble = str(error)
            log.warning("night: no backup: %s", trouble)
        await self._note(NO_BACKUP, f"no backup was made: {trouble}" if trouble else "")

    def _next_due(self, reader: Reader) -> int:
        """The hour that follows the latest proof, and a minute after the start at the earliest."""
        proven = read_record(self._directory.root).at
        return max(next_night(reader, proven, self._box.settings.backup.hour), self._first)

    async def note_overdue(self) -> None:
        """Note that there is no backup where none was even tried; take the note back."""
        live = self._box.live.database
        record, late_at = read_record(self._directory.root), await live.read(self._late_at)
        is_late = late_at is not None and late_at <= self._box.clock.now()
        why = f" ({record.trouble})" if record.trouble else ""
        sentence = f"no backup was made for more than 30 hours{why}"
        await self._note(NO_BACKUP, sentence if is_late else "")

    def _overdue_at(self, reader: Reader) -> int | None:
        """When to note it, or at once where a backup was made by hand after it was noted."""
        late_at = self._late_at(reader)
        is_late = late_at is not None and late_at <= reader.now
        if not self._is_noted(reader):
            return late_at
        return None if is_late or read_record(self._directory.root).trouble else 0

    def _late_at(self, reader: Reader) -> int | None:
        """A box that never had a backup has as long as if it had been made with one."""
        since = read_record(self._directory.root).at or find_first_instant(reader)
        return None if since is None else since + _OVERDUE_MS

    def _is_noted(self, reader: Reader) -> bool:
        return any(each.name == NO_BACKUP for each in list_conditions(reader))

    async def _list_noted(self) -> set[str]:
        return {each.name for each in await self._box.live.database.read(list_conditions)}

    async def _note(self, name: str, sentence: str) -> None:
        try:
            await self._box.live.database.write(_write_condition, name, sentence)
        except Refusal:
            log.warning("night: %s", sentence)


async def _try(what: str, work: Callable[[], Awaitable[object]]) -> None:
    try:
        await work()
    except (Refusal, Trouble, OSError, apsw.Error) as trouble:
        log.warning("night: %s did not succeed: %s", what, trouble)


def is_overdue(record: Record, clock: Clock) -> bool:
    """Whether the latest proven backup is older than a night and some hours, or there is none."""
    return record.at is None or clock.now() - record.at > _OVERDUE_MS


def _write_condition(tx: Transaction, name: str, sentence: str) -> None:
    if sentence:
        put_condition(tx, Condition(name, "", tx.now, sentence))
    else:
        drop_condition(tx, name, "")
