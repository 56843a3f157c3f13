"""Make backups for the portal, at most one at a time."""

import asyncio
import logging
from pathlib import Path

from aiohttp import web

from appliance.backup.catalogue import find_catalogue, list_backups
from appliance.backup.copies import CopyRecord, read_copy_record
from appliance.backup.create import Maker
from appliance.box import Box
from appliance.core.errors import OperatorError, log_exception
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
