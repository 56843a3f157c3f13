"""What was erased on demand stays erased: wiped from the files, and again after a restore.

`erasures.jsonl` in the data directory lists reservations by their ids, which name nobody. No
restore takes it back to an earlier state, so it knows what a backup must not bring back.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from appliance.accidents import log_accident
from appliance.actions.erase_guest import GuestErased, erase_again
from appliance.durable import sync
from appliance.environment import Environment
from appliance.errors import Refusal, Trouble
from appliance.store.database import ChangedBeside
from appliance.store.erasing import list_erasures
from appliance.store.wiping import is_small, wipe
from appliance.upkeep.erasure_list import LIST, append_to_list, find_unreadable, read_list
from appliance.upkeep.retention import seconds_until_the_night
from appliance.upkeep.upkeep import Alarm, CallLater

log = logging.getLogger(__name__)

_BATCH = 20
_AGAIN_SECONDS, _LONGEST_AGAIN_SECONDS = 60.0, 3600.0
_DAY_SECONDS, _NIGHT_SECONDS = 86_400.0, 3600.0
_LONGEST_SECONDS = 6 * 3600.0  # the clock may be set while it sleeps
_LATE_MS = 12 * 3_600_000  # a box that is off at night does it at its start
_A_NIGHT_MS = 26 * 3_600_000  # and one that sleeps through it, when it is awake


class Erasures:
    """Follows the erasures of one environment. `start` it before the first request."""

    def __init__(self, environment: Environment, call_later: CallLater | None = None) -> None:
        """`call_later` is the event loop's own unless a test owns the time."""
        self._call_later = call_later
        self._database = environment.database
        self._name = environment.name
        self._folder = environment.database.path.parent
        self._task: asyncio.Task[None] | None = None
        self._mark = _Mark(self._folder, environment.name)
        self._again: Alarm | None = None
        self._look: Alarm | None = None
        self._delay = _AGAIN_SECONDS
        self._at_once = False
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
        if found or missing or self._mark.since() is not None:
            self._at_once = found > 0 or self._mark_is_older(_LATE_MS)
            self._follow()

    async def close(self) -> None:
        """Finish what is being wiped."""
        self._closed = True
        for alarm in (self._again, self._look):
            if alarm is not None:
                alarm.cancel()
        await self.settle()

    async def settle(self) -> None:
        """Wait until nothing is being done."""
        while self._task is not None:
            await self._task

    def _on_commit(self, notices: Sequence[object]) -> None:
        if any(isinstance(notice, GuestErased) for notice in notices):
            self._follow()
        elif self._look is None and any(isinstance(one, ChangedBeside) for one in notices):
            self._look = self._set(_AGAIN_SECONDS, self._look_beside)

    def _look_beside(self) -> None:
        """Whether a command has erased, and found no moment to wipe."""
        self._look = None
        if self._mark.since() is not None:
            self._follow()

    def _follow(self) -> None:
        self._more = True
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._work(), name="erasures")

    async def _work(self) -> None:
        try:
            while self._more:
                self._more = False
                await self._take_note()
                wait = await self._find_wait()
                if wait > 0:
                    self._later(wait)
                else:
                    await self._wipe()
        except (Refusal, Trouble, OSError) as trouble:
            log.warning("what was erased is wiped later: %s", trouble)
            self._try_again()
        except Exception as error:  # noqa: BLE001 - it is tried again
            log_accident("wiping what was erased", error)
            self._try_again()
        finally:
            self._task = None

    async def _take_note(self) -> None:
        """That something is to be wiped, and for restores what was erased."""
        erased = await self._database.read(list_erasures)
        await asyncio.to_thread(self._mark.set)
        await asyncio.to_thread(append_to_list, self._folder, self._name, erased)

    async def _find_wait(self) -> float:
        """Seconds to wait before the file is written anew, while nobody else can write."""
        if self._at_once or is_small(self._database.path) or self._mark_is_older(_A_NIGHT_MS):
            return 0.0
        wait = await self._database.read(seconds_until_the_night)
        return 0.0 if wait > _DAY_SECONDS - _NIGHT_SECONDS else min(wait, _LONGEST_SECONDS)

    def _mark_is_older(self, milliseconds: int) -> bool:
        since = self._mark.since()
        return since is not None and self._database.clock.now() - since > milliseconds

    async def _wipe(self) -> None:
        self._at_once = False
        if not await self._database.wipe():
            self._try_again()
            return
        self._delay = _AGAIN_SECONDS
        if not self._more:
            await asyncio.to_thread(self._mark.clear)

    def _try_again(self) -> None:
        self._later(self._delay)
        self._delay = min(2 * self._delay, _LONGEST_AGAIN_SECONDS)

    def _later(self, seconds: float) -> None:
        if self._again is not None:
            self._again.cancel()
        self._again = self._set(seconds, self._follow)

    def _set(self, seconds: float, call: Callable[[], None]) -> Alarm | None:
        later = self._call_later or asyncio.get_running_loop().call_later
        return None if self._closed else later(seconds, call)


class _Mark:
    """A file that is there while something erased is not wiped yet."""

    def __init__(self, folder: Path, environment: str) -> None:
        self._path = folder / f"unwiped-{environment}"

    def set(self) -> None:
        """Durable when this returns. One that is there stays as old as it is."""
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return
        os.close(handle)
        sync(self._path.parent)

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)

    def since(self) -> int | None:
        """When it was set, in ms since 1970; None when it is not."""
        try:
            return int(self._path.stat().st_mtime * 1000)
        except FileNotFoundError:
            return None


def finish_erasures(path: Path, environment: str, erased: Collection[str], at: int) -> bool:
    """For a command beside the box: list what it erased in the database at `path`, and wipe it.

    False when others were in the way all the time: then the box does it, tonight at the latest.
    """
    mark = _Mark(path.parent, environment)
    mark.set()
    append_to_list(path.parent, environment, dict.fromkeys(erased, at))
    wiped = wipe(path)
    if wiped:
        mark.clear()
    return wiped
