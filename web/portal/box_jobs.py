"""Backups and checks that were asked for in the portal, one at a time."""

import asyncio
import logging
from pathlib import Path

from aiohttp import web

from appliance.backup.catalogue import find_catalogue, list_backups
from appliance.backup.create import Maker
from appliance.box import Box
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError, log_exception
from appliance.core.process import run_in_daemon_thread
from appliance.core.settings import Settings, read_settings
from appliance.doctor.check import Check, CheckContext
from web.portal.box_settings import directory_of
from web.portal.session import BOX

log = logging.getLogger(__name__)


class BackingUp:
    """Makes a backup as each night does; the shelf's record says what came of it."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._stage = ("copy", 0)

    @property
    def stage(self) -> tuple[str, int] | None:
        """What is being done (copy, seal or prove) and how many percent of it; None: nothing."""
        return None if self._task is None or self._task.done() else self._stage

    def start(self, box: Box, directory: DataDirectory) -> None:
        """Begin, unless one is being made already."""
        if self.stage is None:
            self._stage = ("copy", 0)
            self._task = asyncio.get_running_loop().create_task(self._make(box, directory))

    async def close(self, _app: web.Application) -> None:
        """What is being made is left unfinished, and makes nothing of what there is worse."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _make(self, box: Box, directory: DataDirectory) -> None:
        maker = Maker(directory, box.settings, box.clock, box.tokens, box.zones, self._tell)
        try:
            await run_in_daemon_thread(maker.make)
        except OperatorError as trouble:  # it is in the record, which the page shows
            log.warning("no backup: %s", trouble)
        except Exception as error:  # noqa: BLE001 - the night makes the next one
            log_exception("the backup that was asked for", error)

    def _tell(self, what: str, done: int, of: int) -> None:
        """Hears from the thread."""
        self._stage = (what, min(100, 100 * done // max(of, 1)))


BACKING_UP = web.AppKey("backing_up", BackingUp)


def summarise_backups(
    directory: DataDirectory, settings: Settings, venue_id: str
) -> tuple[Path | None, int]:
    """Its folder, None where it is not there, and how many backups of this venue are in it.

    Reads the heads of the files: not for the loop.
    """
    try:
        folder = find_catalogue(directory, settings)
        return folder, len(list_backups(folder, venue_id))
    except (OperatorError, OSError):
        return None, 0


DEADLINE = 8.0  # seconds a page waits; the checks go on, and the next page has them
FRESH_MILLISECONDS = 60_000


Findings = tuple[list[Check], int]
"""What was found, and when (ms since 1970)."""


class Examiner:
    """Remembers the latest findings: a page that is looked at again costs nothing."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Findings] | None = None
        self._latest: Findings | None = None

    async def look(self, request: web.Request, *, again: bool) -> Findings | None:
        """Findings of the last minute, else fresh ones; None when they take too long.

        `again` asks for fresh ones in any case.
        """
        now, latest = request.app[BOX].clock.now(), self._latest
        if latest is not None and not again and 0 <= now - latest[1] < FRESH_MILLISECONDS:
            return latest
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._examine(request))
        done, _ = await asyncio.wait({self._task}, timeout=DEADLINE)
        return self._latest if done else None

    async def close(self, _app: web.Application) -> None:
        """Let the thread end before the databases close."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=DEADLINE)

    async def _examine(self, request: web.Request) -> Findings:
        box = request.app[BOX]
        checks = await asyncio.to_thread(_look_at, box, directory_of(request))
        self._latest = checks, box.clock.now()
        return self._latest


EXAMINER = web.AppKey("examiner", Examiner)


def _look_at(box: Box, directory: DataDirectory) -> list[Check]:
    # Imported in the thread, when the first page asks: a mail client comes along.
    from appliance.doctor.checks import examine  # noqa: PLC0415

    settings: Settings | str = box.settings
    try:
        read_settings(directory.settings_file, {})
    except OperatorError as trouble:  # their file would stop the next start
        settings = str(trouble)
    return examine(CheckContext(directory, settings, box.clock, box.zones))
