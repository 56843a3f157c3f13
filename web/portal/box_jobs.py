"""Run backups and checks for the portal, at most one of each at a time."""

import asyncio
import logging
from pathlib import Path

from aiohttp import web

from appliance.backup.catalogue import find_catalogue, list_backups
from appliance.backup.copies import CopyRecord, read_copy_record
from appliance.backup.create import Maker
from appliance.box import Box
from appliance.core.errors import OperatorError, log_exception
from appliance.core.settings import Settings, read_settings
from appliance.doctor.check import Check, CheckContext, Machine
from appliance.doctor.outside import OutsideWatch
from appliance.scheduler import run_in_daemon_thread

log = logging.getLogger(__name__)


class BackingUp:
    """Makes backups on request. The result is recorded on disk, as for nightly backups."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._stage = ("copy", 0)

    @property
    def stage(self) -> tuple[str, int] | None:
        """Return the running backup's stage (copy, seal or prove) and percentage, or None."""
        return None if self._task is None or self._task.done() else self._stage

    def start(self, box: Box) -> None:
        """Start a backup unless one is running."""
        if self.stage is None:
            self._stage = ("copy", 0)
            self._task = asyncio.get_running_loop().create_task(self._make(box))

    async def close(self, _app: web.Application) -> None:
        """Cancel the running backup, if any. Existing backups are unaffected."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _make(self, box: Box) -> None:
        maker = Maker(box.directory, box.settings, box.clock, box.zones, self._set_stage)
        try:
            await run_in_daemon_thread(maker.make)
        except OperatorError as failure:  # the page shows the failure
            log.warning("portal: backup failed: %s", failure)
        except Exception as error:  # noqa: BLE001 - the failure must not stop the box
            log_exception("portal: backup", error)

    def _set_stage(self, stage: str, done: int, total: int) -> None:
        """Set the stage and its percentage. Called from the backup thread."""
        self._stage = (stage, min(100, 100 * done // max(total, 1)))


BACKING_UP = web.AppKey("backing_up", BackingUp)


def summarise_backups(box: Box) -> tuple[Path | None, int]:
    """Return the backup folder, or None if it is missing, and the number of backups in it.

    Call this in a thread, because a volume may not answer.
    """
    try:
        folder = find_catalogue(box.directory, box.settings)
        return folder, len(list_backups(folder))
    except (OperatorError, OSError):
        return None, 0


def find_copies(box: Box) -> CopyRecord:
    """Return the record of the copies at the backup target, or an empty record if there is none."""
    record = read_copy_record(box.directory.root)
    return record if record.target == box.settings.backup.target else CopyRecord()


# How many seconds a page waits for the checks. If they take longer, their results appear after the
# page is reloaded.
_DEADLINE = 8.0
_FRESH_MS = 60_000


Findings = tuple[list[Check], int]
"""The results of the checks and the time when they ran (ms since 1970)."""


class Examiner:
    """Runs the checks of `venuebox doctor` and caches the findings for one minute."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Findings] | None = None
        self._latest: Findings | None = None

    async def look(self, box: Box, *, again: bool) -> Findings | None:
        """Return cached or new findings, or None if the checks take longer than 8 s.

        If `again` is true, run the checks even if the cached findings are fresh.
        """
        now, latest = box.clock.now(), self._latest
        if latest is not None and not again and 0 <= now - latest[1] < _FRESH_MS:
            return latest
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._examine(box))
        done, _ = await asyncio.wait({self._task}, timeout=_DEADLINE)
        return self._latest if done else None

    async def close(self, _app: web.Application) -> None:
        """Wait up to 8 s for running checks, because they use the databases."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_DEADLINE)

    async def _examine(self, box: Box) -> Findings:
        self._latest = await asyncio.to_thread(_run_checks, box), box.clock.now()
        return self._latest


EXAMINER = web.AppKey("examiner", Examiner)
OUTSIDE = web.AppKey("outside", OutsideWatch)


def _run_checks(box: Box) -> list[Check]:
    # Imported here because it loads the mail client, which would delay the start of the box.
    from appliance.doctor.checks import examine  # noqa: PLC0415

    directory = box.directory
    settings: Settings | str = box.settings
    try:
        read_settings(directory.settings_file, {})
    except OperatorError as failure:  # the box would not start again with this file
        settings = str(failure)
    machine = Machine(is_synchronised=box.clock.synchronised)
    clock = box.clock.machine
    return examine(CheckContext(directory, settings, clock, box.zones, machine=machine))
