"""What was erased on demand stays erased: in the files at once, and again after a restore.

`erasures.jsonl` in the data directory lists reservations by their ids, which name nobody. No
restore takes it back to an earlier state, so it knows what a backup must not bring back.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from pathlib import Path

from appliance.actions.erase_guest import GuestErased, erase_again
from appliance.environment import Environment
from appliance.errors import Trouble
from appliance.scheduler import Job
from appliance.store.connection import Reader
from appliance.store.erasing import list_erasures
from appliance.store.wiping import wipe
from appliance.upkeep.erasure_list import LIST, append_to_list, find_unreadable, read_list

log = logging.getLogger(__name__)

_BATCH = 20


class Erasures:
    """Follows the erasures of one environment. `start` it before the first request."""

    def __init__(self, environment: Environment) -> None:
        self._database = environment.database
        self._name = environment.name
        self._folder = environment.database.path.parent
        self._asked = self._done = 0
        self.job = Job(f"{self._name}: erasures", self._database, self._next_due, self.finish)

    async def start(self) -> None:
        """Erase again what a restore has brought back, before anybody can see it."""
        self._database.on_commit(self._on_commit)
        known = await self._database.read(list_erasures)
        spoiled = find_unreadable(self._folder)
        if spoiled:
            log.warning("%s cannot be read in these lines: %s", LIST, ", ".join(map(str, spoiled)))
        listed = read_list(self._folder, self._name)
        back = [id_ for id_ in listed if id_ not in known]
        steps = range(0, len(back), _BATCH)
        found = sum([await self._database.write(erase_again, back[n : n + _BATCH]) for n in steps])
        if found:
            log.warning("%d guests were erased again: a backup had brought them back", found)
        (self._folder / f"unwiped-{self._name}").unlink(missing_ok=True)  # of earlier versions
        self._asked += bool(found or known)  # a crash may have left the log uncut

    async def finish(self) -> None:
        """List what was erased, for restores, and cut the WAL, which still holds it."""
        asked = self._asked
        erased = await self._database.read(list_erasures)
        await asyncio.to_thread(append_to_list, self._folder, self._name, erased)
        if not await self._database.cut_log():
            raise Trouble(f"the log of {self._name}.db is in use and still holds erased data")
        self._done = asked

    def _on_commit(self, notices: Sequence[object]) -> None:
        if any(isinstance(notice, GuestErased) for notice in notices):
            self._asked += 1
            self.job.changed()

    def _next_due(self, _reader: Reader) -> int | None:
        return 0 if self._asked > self._done else None


def finish_erasures(path: Path, environment: str, erased: Collection[str], at: int) -> bool:
    """For a command beside the box: list what it erased in the database at `path`, and wipe it.

    False when others were in the way all the time: then the box does it in the night.
    """
    append_to_list(path.parent, environment, dict.fromkeys(erased, at))
    return wipe(path)
