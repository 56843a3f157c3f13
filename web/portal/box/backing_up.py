"""The backup that somebody asked for, one at a time, and the backups that are kept."""

import asyncio
import logging
from pathlib import Path

from aiohttp import web

from appliance.accidents import log_accident
from appliance.backup.making import Maker
from appliance.backup.shelf import find_shelf, list_backups
from appliance.box import Box
from appliance.data_directory import DataDirectory
from appliance.errors import Trouble
from appliance.settings import Settings
from appliance.upkeep.beside import run_beside

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
            await run_beside(maker.make)
        except Trouble as trouble:  # it is in the record, which the page shows
            log.warning("no backup: %s", trouble)
        except Exception as error:  # noqa: BLE001 - the night makes the next one
            log_accident("the backup that was asked for", error)

    def _tell(self, what: str, done: int, of: int) -> None:
        """Hears from the thread."""
        self._stage = (what, min(100, 100 * done // max(of, 1)))


BACKING_UP = web.AppKey("backing_up", BackingUp)


def look_at_shelf(
    directory: DataDirectory, settings: Settings, venue_id: str
) -> tuple[Path | None, int]:
    """Its folder, None where it is not there, and how many backups of this venue are in it.

    Reads the heads of the files: not for the loop.
    """
    try:
        folder = find_shelf(directory, settings)
        return folder, len(list_backups(folder, venue_id))
    except (Trouble, OSError):
        return None, 0
