"""The doctor's checks beside a running box: in a thread, once at a time, with a deadline."""

import asyncio

from aiohttp import web

from appliance.box import Box
from appliance.data_directory import DataDirectory
from appliance.doctor.check import Check, CheckContext
from appliance.errors import Trouble
from appliance.settings import Settings, read_settings
from web.portal.box.saved import directory_of
from web.portal.context import BOX

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
    from appliance.doctor.examination import examine  # noqa: PLC0415

    settings: Settings | str = box.settings
    try:
        read_settings(directory.settings_file, {})
    except Trouble as trouble:  # their file would stop the next start
        settings = str(trouble)
    return examine(CheckContext(directory, settings, box.clock, box.zones))
