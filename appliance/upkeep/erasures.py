"""What was erased on demand stays erased: wiped from the files, and again after a restore.

`erasures.jsonl` in the data directory lists reservations by their ids, which name nobody. No
restore takes it back to an earlier state, so it knows what a backup must not bring back.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from pathlib import Path

from appliance.accidents import log_accident
from appliance.actions.erase_guest import GuestErased, erase_again
from appliance.environment import Environment
from appliance.errors import Refusal, Trouble
from appliance.store.erasing import list_erasures
from appliance.store.wiping import wipe
from appliance.upkeep.erasure_list import LIST, append_to_list, find_unreadable, read_list

log = logging.getLogger(__name__)

_BATCH = 20
_AGAIN_SECONDS = 60.0


class Erasures:
    """Follows the erasures of one environment. `start` it before the first request."""

    def __init__(self, environment: Environment) -> None:
        self._database = environment.database
        self._name = environment.name
        self._folder = environment.database.path.parent
        self._task: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None
        self._more = False
        self._closed = False

    async def start(self) -> None:
        """Erase again what a restore has brought back, before anybody can see it."""
        self._database.on_commit(self._on_commit)
        known = await self._database.read(list_erasures)
        spoiled = find_unreadable(self._folder)
        if spoiled:
            log.warning("%s cannot be read in these lines: %s", LIST, ", ".join(map(str, spoiled)))
        back = [id_ for id_ in read_list(self._folder, self._name) if id_ not in known]
        found = 0
        for n in range(0, len(back), _BATCH):
            found += await self._database.write(erase_again, back[n : n + _BATCH])
        if found:
            log.warning("%d guests were erased again: a backup had brought them back", found)
        missing = known.keys() - set(read_list(self._folder, self._name))
        if found or missing:
            self._follow()

    async def close(self) -> None:
        """Finish what is being wiped."""
        self._closed = True
        if self._again is not None:
            self._again.cancel()
        await self.settle()

    async def settle(self) -> None:
        """Wait until nothing is being done."""
        while self._task is not None:
            await self._task

    def _on_commit(self, notices: Sequence[object]) -> None:
        if any(isinstance(notice, GuestErased) for notice in notices):
            self._follow()

    def _follow(self) -> None:
        self._more = True
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._work(), name="erasures")

    async def _work(self) -> None:
        try:
            while self._more:
                self._more = False
                erased = await self._database.read(list_erasures)
                # In this order: who is not listed is wiped after the next start.
                if await asyncio.to_thread(wipe, self._database.path):
                    await asyncio.to_thread(append_to_list, self._folder, self._name, erased)
                else:
                    self._later()
        except (Refusal, Trouble, OSError) as trouble:
            log.warning("what was erased is wiped in a minute: %s", trouble)
            self._later()
        except Exception as error:  # noqa: BLE001 - it tries again in a minute
            log_accident("wiping what was erased", error)
            self._later()
        finally:
            self._task = None

    def _later(self) -> None:
        if not self._closed:
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(_AGAIN_SECONDS, self._follow)


def finish_erasures(path: Path, environment: str, erased: Collection[str], at: int) -> bool:
    """For a command beside the box: list what it erased in the database at `path`, and wipe it.

    False when the box was in the way: then it does both after its next start.
    """
    wiped = wipe(path)
    if wiped:
        append_to_list(path.parent, environment, dict.fromkeys(erased, at))
    return wiped
