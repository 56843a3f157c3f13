"""Backups and checks started from the portal, one at a time."""

import asyncio
import logging
from pathlib import Path

from aiohttp import web

from appliance.backup.catalogue import find_catalogue, list_backups
from appliance.backup.create import Maker
from appliance.box import Box
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError, log_exception
from appliance.core.settings import Settings, read_settings
from appliance.doctor.check import Check, CheckContext
from appliance.jobs.nightly import run_in_daemon_thread
from web.portal.box_settings import directory_of
from web.portal.session import BOX

log = logging.getLogger(__name__)


class BackingUp:
    """Makes a backup as nightly work does; the record in the backup folder has the result."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._stage = ("copy", 0)

    @property
    def stage(self) -> tuple[str, int] | None:
        """Return the stage (copy, seal or prove) and its percentage; None if no backup runs."""
        return None if self._task is None or self._task.done() else self._stage

    def start(self, box: Box, directory: DataDirectory) -> None:
        """Start a backup unless one is running."""
        if self.stage is None:
            self._stage = ("copy", 0)
            self._task = asyncio.get_running_loop().create_task(self._make(box, directory))

    async def close(self, _app: web.Application) -> None:
        """Cancel a running backup; existing backups are unaffected."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _make(self, box: Box, directory: DataDirectory) -> None:
        maker = Maker(directory, box.settings, box.clock, box.tokens, box.zones, self._tell)
        try:
            await run_in_daemon_thread(maker.make)
        except OperatorError as trouble:  # recorded; the page shows it
            log.warning("portal: backup failed: %s", trouble)
        except Exception as error:  # noqa: BLE001 - nightly work makes the next one
            log_exception("portal: backup", error)

    def _tell(self, what: str, done: int, of: int) -> None:
        """Update the stage; called from the backup thread."""
        self._stage = (what, min(100, 100 * done // max(of, 1)))


BACKING_UP = web.AppKey("backing_up", BackingUp)


def summarise_backups(
    directory: DataDirectory, settings: Settings, venue_id: str
) -> tuple[Path | None, int]:
    """Return the backup folder (None if missing) and the number of this venue's backups in it.

    Reads the header of each file: do not call it on the event loop.
    """
    try:
        folder = find_catalogue(directory, settings)
        return folder, len(list_backups(folder, venue_id))
    except (OperatorError, OSError):
        return None, 0


DEADLINE = 8.0  # seconds a page waits; the checks continue, and the next page shows them
FRESH_MILLISECONDS = 60_000


Findings = tuple[list[Check], int]
"""The checks and when they ran (ms since 1970)."""


class Examiner:
    """Caches the latest findings for one minute."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Findings] | None = None
        self._latest: Findings | None = None

    async def look(self, request: web.Request, *, again: bool) -> Findings | None:
        """Return cached or new findings; None if the checks take longer than DEADLINE.

        `again` runs the checks in any case.
        """
        now, latest = request.app[BOX].clock.now(), self._latest
        if latest is not None and not again and 0 <= now - latest[1] < FRESH_MILLISECONDS:
            return latest
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._examine(request))
        done, _ = await asyncio.wait({self._task}, timeout=DEADLINE)
        return self._latest if done else None

    async def close(self, _app: web.Application) -> None:
        """Wait for the check thread before the databases close."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=DEADLINE)

    async def _examine(self, request: web.Request) -> Findings:
        box = request.app[BOX]
        checks = await asyncio.to_thread(_look_at, box, directory_of(request))
        self._latest = checks, box.clock.now()
        return self._latest


EXAMINER = web.AppKey("examiner", Examiner)


def _look_at(box: Box, directory: DataDirectory) -> list[Check]:
    # Imported in the thread at the first request: it loads a mail client.
    from appliance.doctor.checks import examine  # noqa: PLC0415

    settings: Settings | str = box.settings
    try:
        read_settings(directory.settings_file, {})
    except OperatorError as trouble:  # the file would prevent the next start
        settings = str(trouble)
    return examine(CheckContext(directory, settings, box.clock, box.zones))
