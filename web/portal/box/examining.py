"""The doctor's checks beside a running box: in a thread, once at a time, with a deadline."""

import asyncio
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found, and when (ms since 1970)."""

    checks: tuple[Check, ...]
    at: int


class Examiner:
    """Remembers the latest findings: a page that is looked at again costs nothing."""

    def __init__(self, deadline: float = DEADLINE) -> None:
        self._deadline = deadline
        self._task: asyncio.Task[Findings] | None = None
        self._latest: Findings | None = None

    async def look(self, request: web.Request, *, again: bool) -> Findings | None:
        """Findings of the last minute, else fresh ones; None when they take too long.

        `again` asks for fresh ones in any case.
        """
        box, latest = request.app[BOX], self._latest
        age = None if latest is None else box.clock.now() - latest.at
        if not again and age is not None and 0 <= age < FRESH_MILLISECONDS:
            return latest
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._examine(request))
        done, _ = await asyncio.wait({self._task}, timeout=self._deadline)
        return self._latest if done else None

    async def close(self, _app: web.Application) -> None:
        """Let the thread end before the databases close."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=self._deadline)

    async def _examine(self, request: web.Request) -> Findings:
        box = request.app[BOX]
        directory = directory_of(request)
        checks = await asyncio.to_thread(_look_at, box, directory)
        self._latest = Findings(tuple(checks), box.clock.now())
        return self._latest


EXAMINER = web.AppKey("examiner", Examiner)


def _look_at(box: Box, directory: DataDirectory) -> list[Check]:
    # Imported in the thread, when the first page asks: a mail client comes along.
    from appliance.doctor.examination import examine  # noqa: PLC0415

    settings = _settings(directory, box.settings)
    return examine(CheckContext(directory, settings, box.clock, box.zones))


def _settings(directory: DataDirectory, used: Settings) -> Settings | str:
    """Those in force, unless their file would stop the next start."""
    try:
        read_settings(directory.settings_file, {})
    except Trouble as trouble:
        return str(trouble)
    return used
