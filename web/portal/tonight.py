"""`/portal/tonight`: the evening board, whole, the rows that changed, or what changes as events."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from appliance.environment import Environment
from appliance.errors import Unavailable
from appliance.live import Change, Listener
from appliance.store.connection import Reader
from appliance.store.venue import get_venue
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import find_zone, language_of, moment, portal_page
from web.portal.board import Board, read_board
from web.portal.context import HOUSE, SESSION
from web.portal.forms import asked_day
from web.portal.guard import find_living_session
from web.portal.navigation import PortalRoute

_ROWS_MAX = 60
_HEARTBEAT_SECONDS = 20.0


async def show_board(request: web.Request) -> web.Response:
    """The board of `?date=`, else of tonight."""
    return await _page(request, "portal/tonight/page.html", await _read(request))


async def show_rows(request: web.Request) -> web.Response:
    """The rows of `?tables=` (ids with commas), the totals and the strip of requests."""
    tables = frozenset(request.query.get("tables", "").split(",")[:_ROWS_MAX])
    return await _page(request, "portal/tonight/rows.html", await _read(request, tables))


async def show_sheet(request: web.Request) -> web.Response:
    """The evening on paper, for when everything fails; it says of which venue and of when."""

    def read_house(reader: Reader) -> dict[str, object]:
        as_of = moment(reader.now, find_zone(reader), language_of(request))
        return {"venue": get_venue(reader).name, "as_of": as_of}

    house = await request[ENVIRONMENT].database.read(read_house)
    return await _page(request, "portal/tonight/sheet.html", await _read(request), house)


async def _read(request: web.Request, tables: frozenset[str] | None = None) -> Board:
    environment = request[ENVIRONMENT]
    return await environment.database.read(
        read_board, asked_day(request), environment.feed.position, tables
    )


async def _page(
    request: web.Request, template: str, board: Board, more: dict[str, object] | None = None
) -> web.Response:
    language = language_of(request)
    near = {-1: language.gettext("Last night"), 0: language.gettext("Tonight"),
            1: language.gettext("Tomorrow")}  # fmt: skip
    values: dict[str, object] = {
        "board": board,
        "title": near.get((board.day - board.tonight).days) or language.short_date(board.day),
        "sees_guests": request[SESSION].person.may("host"),
        **(more or {}),
    }
    # A big board takes tens of milliseconds: the door's scans need not wait for it.
    return await asyncio.get_running_loop().run_in_executor(
        None, portal_page, request, template, values
    )


async def board_events(request: web.Request) -> web.StreamResponse:
    """`GET /portal/tonight/events?date=&after=`: which rows of that evening to read again.

    An event `row` names the reservation and its table; `reset` says to read everything.
    """
    day = asked_day(request)
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


TONIGHT_ROUTES = (
    PortalRoute("GET", "/portal/tonight", "door", show_board),
    PortalRoute("GET", "/portal/tonight/rows", "door", show_rows),
    PortalRoute("GET", "/portal/tonight/sheet", "door", show_sheet),
    PortalRoute("GET", "/portal/tonight/events", "door", board_events),
)
