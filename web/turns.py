"""One at a time: two requests with one idempotency key take turns (decisions.md)."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class Turns:
    """Lets the holders of one name pass one after the other, and everybody else at once."""

    def __init__(self) -> None:
        self._busy: dict[Hashable, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def take(self, name: Hashable) -> AsyncIterator[None]:
        """Wait until nobody else holds `name`, then hold it."""
        while (busy := self._busy.get(name)) is not None:
            await asyncio.wait([busy])
        done = self._busy[name] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._busy[name]
            done.set_result(None)
