"""Somebody who listens to the feed: a queue with an end."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from appliance.live.change import Change

QUEUE_LIMIT = 256  # changes that somebody slow may have waiting


class Listener:
    """Somebody who listens. Made by `Feed.listen`, ended by `leave` or by the feed itself."""

    def __init__(self, owner: str, wants: Callable[[Change], bool]) -> None:
        self.owner = owner
        self.position = ""
        self.joined_at = 0
        self.over = asyncio.get_running_loop().create_future()
        self._wants = wants
        self._waiting: deque[Change] = deque()
        self._news = asyncio.Event()

    async def take(self, seconds: float) -> list[Change]:
        """What there is to tell, waiting at most so long; nothing when it is time to leave."""
        if not self._waiting and not self.over.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()
        self._news.clear()
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def tell(self, changes: Iterable[Change]) -> None:
        """Queue what it wants to hear; who is too slow for that is told to start anew."""
        if self.over.done():
            return
        for change in changes:
            self.position = change.position
            if not self._wants(change):
                continue
            if len(self._waiting) >= QUEUE_LIMIT:
                self._waiting.clear()
                self._waiting.append(Change(change.position, "reset"))
            elif change.kind == "revoked" or not self._starts_anew():
                self._waiting.append(change)
        if self._waiting:
            self._news.set()

    def end(self) -> None:
        """Let whoever listens leave, once it has taken what is queued."""
        if not self.over.done():
            self.over.set_result(None)
        self._news.set()

    def drop(self) -> None:
        """Let it leave without what is queued, which it may have to hear otherwise."""
        self._waiting.clear()
        self.end()

    def _starts_anew(self) -> bool:
        """Whether it will read everything again, later than this."""
        return bool(self._waiting) and self._waiting[-1].kind == "reset"
