"""Leaving in good order: requests that were being answered when the stop came are finished.

aiohttp's own clean-up stops reading at once, which would cut off a booking whose body is still
on its way. Until it runs, this waits for what is in flight.
"""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Drain:
    """Counts the requests of an application, and tells when the last one is done."""

    def __init__(self, app: web.Application) -> None:
        """Watch `app`, which has not started yet."""
        self._in_flight = 0
        self._draining = False
        self._empty = asyncio.Event()
        app.middlewares.insert(0, self._count)

    async def wait(self, seconds: float) -> bool:
        """Wait until nothing is in flight, at most `seconds`; whether that came true.

        Whoever still sends on a connection that was kept open is answered and let go.
        """
        self._draining = True
        if self._in_flight == 0:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._in_flight += 1
        try:
            response = await handler(request)
            if self._draining:
                response.force_close()
            return response
        finally:
            self._in_flight -= 1
            if self._draining and self._in_flight == 0:
                self._empty.set()
