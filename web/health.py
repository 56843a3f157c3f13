"""`GET /health` and `GET /ready`: whether the box really reads and writes, and nothing else.

For watchdogs, proxies and `venuebox doctor`. Nobody learns a version, a path or a count here
(docs/security.md, S29).
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from aiohttp import web

from appliance.actions.beat import beat
from appliance.box import Box
from appliance.environment import Environment
from appliance.errors import Unavailable
from appliance.store.heartbeat import find_heartbeat
from web.wire import answer

DEADLINE = 2.0
_FRESH_SECONDS = 1.0
_LEAST_ROOM = 1 << 20  # below it the next commits fail, whatever this one did


def free_bytes(folder: Path) -> int:
    """What is left for the box on the volume of `folder`."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


class Health:
    """Reads and writes both databases, at most once a second however many ask."""

    def __init__(
        self, box: Box, free: Callable[[Path], int] = free_bytes, deadline: float = DEADLINE
    ) -> None:
        """`free` tells the room on a volume in bytes; `deadline` in seconds is for all of it."""
        self._box = box
        self._free = free
        self._deadline = deadline
        self._running: asyncio.Task[None] | None = None
        self._judged_at: float | None = None
        self._good = False
        self._serving = False

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """Entered when everything else has started, left before anything stops."""
        self._serving = True
        yield
        self._serving = False
        if self._running is not None:
            await asyncio.wait({self._running}, timeout=self._deadline)

    async def show_health(self, _request: web.Request) -> web.Response:
        """`GET /health`: 200, or 503 when the disk is full, slow or broken."""
        if not await self._is_good():
            raise Unavailable
        return answer({"status": "ok"})

    async def show_ready(self, _request: web.Request) -> web.Response:
        """`GET /ready`: the same, and 503 while the box is starting or stopping."""
        if not self._serving or not await self._is_good():
            raise Unavailable
        return answer({"status": "ok"})

    async def _is_good(self) -> bool:
        if any(environment.database.is_full for environment in self._box.environments):
            return False  # bookings are refused by now, whatever was proved a moment ago
        now = self._box.clock.monotonic()
        if self._judged_at is not None and now - self._judged_at < _FRESH_SECONDS:
            return self._good
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._prove())
        # A disk that hangs holds one proof, not one for each who asks.
        await asyncio.wait({self._running}, timeout=self._deadline)
        self._good = self._running.done() and self._running.exception() is None
        self._judged_at = self._box.clock.monotonic()
        return self._good

    async def _prove(self) -> None:
        await asyncio.gather(*(self._prove_one(e) for e in self._box.environments))

    async def _prove_one(self, environment: Environment) -> None:
        database = environment.database
        if self._free(database.path.parent) < _LEAST_ROOM:
            raise Unavailable
        await database.write(beat)
        if await database.read(find_heartbeat) is None:
            raise Unavailable
