"""`/portal/tonight`: the evening board, whole, the rows that changed, or what changes as events."""

import asyncio
import json
from contextlib import suppress

from aiohttp import web

from appliance.errors import Unavailable
from appliance.live import Change, Listener
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import instants_of, language_of, portal_page
from web.portal.board import read_board
from web.portal.context import HOUSE, SESSION
from web.portal.forms import asked_day
from web.portal.guard import find_living_session
from web.portal.navigation import PortalRoute

_ROWS_MAX = 60
_HEARTBEAT_SECONDS = 20.0


async def show_board(request: web.Request) -> web.Response:
    """The board of `?date=`, else of tonight."""
    return await _page(request, "page")


async def show_rows(request: web.Request) -> web.Response:
    """The rows of `?tables=` (ids with commas), the totals and the strip of requests."""
    tables = frozenset(request.query.get("tables", "").split(",")[:_ROWS_MAX])
    return await _page(request, "rows", tables)


async def show_sheet(request: web.Request) -> web.Response:
    """The evening on paper, for when everything fails; it says of which venue and of when."""
    return await _page(request, "sheet")


async def _page(
    request: web.Request, template: str, tables: frozenset[str] | None = None
) -> web.Response:
    environment, language = request[ENVIRONMENT], language_of(request)
    board = await environment.database.read(
        read_board, asked_day(request), environment.feed.position, tables
    )
    near = {-1: language.gettext("Last night"), 0: language.gettext("Tonight"),
            1: language.gettext("Tomorrow")}  # fmt: skip
    days_away = (board["day"] - board["tonight"]).days
    values: dict[str, object] = {
        "board": board,
        "title": near.get(days_away) or language.short_date(board["day"]),
        "sees_guests": request[SESSION].person.may("host"),
        "in_words": instants_of(request),
    }
    # A big board takes tens of milliseconds: the door's scans need not wait for it.
    template = f"portal/tonight/{template}.html"
    return await asyncio.to_thread(portal_page, request, template, values)


async def board_events(request: web.Request) -> web.StreamResponse:
    """`GET /portal/tonight/events?date=&after=`: which rows of that evening to read again.

    An event `row` names the reservation and its table; `reset` says to read everything.
    """
    day = asked_day(request)
    return _BoardStream(request, day.isoformat() if day else None)


class _BoardStream(web.StreamResponse):
    """A body that is written while things happen, after the headers that every answer gets."""

    def __init__(self, request: web.Request, day: str | None) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        self.content_type = "text/event-stream"
        self.charset = "utf-8"
        self._request, self._day = request, day

    async def write_eof(self, data: bytes = b"") -> None:
        """Tell until somebody ends it: the browser, the box, or the end of the session."""
        feed, owner = self._request[ENVIRONMENT].feed, f"staff:{self._request[SESSION].id}"
        after = self._request.headers.get("Last-Event-ID") or self._request.query.get("after")
        with suppress(Unavailable):  # the box is leaving
            listener = await feed.listen(owner, after, self._concerns)
            try:
                while await self._tell(listener):
                    pass
            finally:
                feed.leave(listener)
        await super().write_eof(data)

    def _concerns(self, change: Change) -> bool:
        found = change.reservation
        return found is None or change.moved or found.date == (self._day or change.evening)

    async def _tell(self, listener: Listener) -> bool:
        changes = await listener.take(_HEARTBEAT_SECONDS)
        # The feed of the house hears at once that a session was ended; that of the test
        # environment, and a session that ends by itself, are noticed here.
        session = find_living_session(self._request, self._request[HOUSE])
        if not listener.over.done() and session is None:
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
    kind, data, found = "totals", {}, change.reservation
    if change.kind in {"reset", "revoked"}:
        kind = change.kind
    elif found is not None:
        kind = "row"
        data = {"reservation": found.id, "table": found.table_id, "version": found.version}
    return f"event: {kind}\nid: {change.position}\ndata: {json.dumps(data)}\n\n"


TONIGHT_ROUTES = (
    PortalRoute("GET", "/portal/tonight", "door", show_board),
    PortalRoute("GET", "/portal/tonight/rows", "door", show_rows),
    PortalRoute("GET", "/portal/tonight/sheet", "door", show_sheet),
    PortalRoute("GET", "/portal/tonight/events", "door", board_events),
)
