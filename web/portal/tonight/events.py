"""What changes on the board while somebody looks at it, as server-sent events."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from appliance.environment import Environment
from appliance.errors import Unavailable
from appliance.live import Change, Listener
from terminal_bridge.context import ENVIRONMENT
from web.portal.context import HOUSE, SESSION
from web.portal.guard import find_living_session
from web.portal.tonight.pages import asked_date

_HEARTBEAT_SECONDS = 20.0


async def board_events(request: web.Request) -> web.StreamResponse:
    """`GET /portal/tonight/events?date=&after=`: which rows of that evening to read again.

    An event `row` names the reservation and its table; `reset` says to read everything.
    """
    day = asked_date(request)
    after = request.headers.get("Last-Event-ID") or request.query.get("after")
    shown = day.isoformat() if day else None

    def is_signed_in() -> bool:
        return find_living_session(request, request[HOUSE]) is not None

    owner = f"staff:{request[SESSION].id}"
    return _BoardStream(request[ENVIRONMENT], owner, shown, after, is_signed_in)


class _BoardStream(web.StreamResponse):
    """A body that is written while things happen, after the headers that every answer gets."""

    def __init__(
        self,
        environment: Environment,
        owner: str,
        day: str | None,
        after: str | None,
        is_signed_in: Callable[[], bool],
    ) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        self.content_type = "text/event-stream"
        self.charset = "utf-8"
        self._feed = environment.feed
        self._owner, self._day, self._after = owner, day, after
        self._is_signed_in = is_signed_in

    async def write_eof(self, data: bytes = b"") -> None:
        """Tell until somebody ends it: the browser, the box, or the end of the session."""
        with suppress(Unavailable):  # the box is leaving
            listener = await self._feed.listen(self._owner, self._after, self._concerns)
            try:
                while await self._tell(listener):
                    pass
            finally:
                self._feed.leave(listener)
        await super().write_eof(data)

    def _concerns(self, change: Change) -> bool:
        found = change.reservation
        return found is None or change.moved or found.date == (self._day or change.evening)

    async def _tell(self, listener: Listener) -> bool:
        changes = await listener.take(_HEARTBEAT_SECONDS)
        # The feed of the house hears at once that a session was ended; that of the test
        # environment, and a session that ends by itself, are noticed here.
        if not listener.over.done() and not self._is_signed_in():
            changes = [Change(listener.position, "revoked")]
            listener.end()
        text = "".join(_lines(change) for change in changes) or f": {listener.position}\n\n"
        try:
            async with asyncio.timeout(_HEARTBEAT_SECONDS):
                await self.write(text.encode())
        except TimeoutError:
            return False
        return not listener.over.done()


def _lines(change: Change) -> str:
    kind: str = "totals"
    data: dict[str, object] = {}
    if change.kind in {"reset", "revoked"}:
        kind = change.kind
    elif change.reservation is not None:
        kind = "row"
        data = {
            "reservation": change.reservation.id,
            "table": change.reservation.table_id,
            "version": change.reservation.version,
        }
    return f"event: {kind}\nid: {change.position}\ndata: {json.dumps(data)}\n\n"
