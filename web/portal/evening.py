"""`/portal/tonight`: the evening board, its row updates and its live feed."""

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from aiohttp import web

from appliance.core.errors import Unavailable
from appliance.database.connection import Reader
from appliance.door.live_feed import Change, Listener
from appliance.http.request import ENVIRONMENT
from appliance.reservations.model import Reservation
from appliance.reservations.rows import count_evening, list_evening
from appliance.venue.model import Slot, day_of_week, interval, minute_of, minutes, overlap
from appliance.venue.rows import find_closing, find_tonight, get_venue, list_slots, list_tables
from web.portal.forms import asked_day
from web.portal.guard import find_living_session
from web.portal.navigation import PortalRoute
from web.portal.responses import instants_of, language_of, portal_page
from web.portal.session import HOUSE, SESSION


@dataclass(frozen=True, slots=True)
class Column:
    """A slot of the evening. A slot that is no longer offered has no name and no interval."""

    start: str
    name: str
    end: str
    holds: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """The reservations of a table for `span` columns, starting at `column`.

    `taken` is the time range of a party in another slot that overlaps this one.
    """

    column: Column | None
    span: int
    reservations: tuple[Reservation, ...]
    taken: str | None = None

    @property
    def is_free(self) -> bool:
        """Return whether the table can be booked in this cell."""
        is_offered = self.column is None or self.column.holds is not None
        return is_offered and not self.reservations and self.taken is None


def read_board(
    reader: Reader, day: date | None, position: str, tables: frozenset[str] | None = None
) -> dict[str, Any]:
    """Return the board of `day`, or of tonight; only the rows of `tables` if given.

    `position` is the live feed's position before this read. A row's `place` is the table's index
    in the venue; `waiting` lists reservations awaiting an answer or a payment; `present` is the
    start of the current or next slot, None on another evening.
    """
    tonight, venue = find_tonight(reader), get_venue(reader)
    chosen = day or tonight
    everybody = [r for r in list_evening(reader, chosen.isoformat()) if r.holds]
    columns = _columns(list_slots(reader), everybody, chosen, venue.evening_ends_at)
    by_table: dict[str, list[Reservation]] = {}
    for reservation in everybody:
        by_table.setdefault(reservation.table_id, []).append(reservation)
    zone = reader.zones.zone(venue.time_zone)
    return {
        "day": chosen,
        "before": chosen - timedelta(days=1),
        "after": chosen + timedelta(days=1),
        "tonight": tonight,
        "columns": columns,
        "rows": [
            {
                "place": place,
                "table": table,
                "cells": list(_cells(columns, by_table.get(table.id, []))),
            }
            for place, table in enumerate(list_tables(reader))
            if (tables is None or table.id in tables) and (table.bookable or table.id in by_table)
        ],
        "waiting": [r for r in everybody if r.status in {"requested", "pending", "partial"}],
        "totals": count_evening(reader, chosen.isoformat()),
        "venue": venue.name,
        "now": reader.now,
        "position": position,
        "present": _present(columns, chosen, reader.now, zone) if chosen == tonight else None,
        "closing": find_closing(reader, chosen.isoformat()),
    }


def _columns(
    slots: Iterable[Slot], everybody: Iterable[Reservation], day: date, evening_ends_at: str
) -> tuple[Column, ...]:
    """Return the slots of that weekday and any others that still have reservations."""
    weekday = day_of_week(day)
    known = {
        s.start: Column(s.start, s.name, s.end, interval(s, evening_ends_at))
        for s in slots
        if weekday in s.days_of_week
    }
    for reservation in everybody:
        if reservation.slot is not None:
            known.setdefault(reservation.slot, Column(reservation.slot, "", ""))
    ends = minutes(evening_ends_at)

    def order(column: Column) -> int:
        start = minutes(column.start)
        return start + (24 * 60 if start < ends else 0)  # times after midnight sort last

    return tuple(sorted(known.values(), key=order))


def _present(columns: tuple[Column, ...], day: date, now: int, zone: ZoneInfo) -> str | None:
    """Return the start of the first slot that has not ended at `now`, else of the last one."""
    for column in columns:
        if column.holds is not None and now < minute_of(day, column.holds[1], zone):
            return column.start
    return columns[-1].start if columns else None


def _cells(columns: tuple[Column, ...], held: list[Reservation]) -> Iterable[Cell]:
    """Yield a table's cells. A whole evening is one cell: it conflicts with every slot."""
    whole = tuple(r for r in held if r.slot is None)
    if whole or not columns:
        yield Cell(None, max(1, len(columns)), whole)
        return
    for column in columns:
        here = tuple(r for r in held if r.slot == column.start)
        yield Cell(column, 1, here, _taken(column, held))


def _taken(column: Column, held: Iterable[Reservation]) -> str | None:
    """Return the hours (`19:30–22:00`) of the first overlapping party in another slot."""
    wanted = column.holds
    if wanted is None:
        return None
    others = [r for r in held if r.slot != column.start and overlap((r.starts, r.ends), wanted)]
    first = min(others, key=lambda r: r.starts, default=None)
    return None if first is None else f"{_clock(first.starts)}–{_clock(first.ends)}"


def _clock(minute: int) -> str:
    return f"{minute // 60 % 24:02d}:{minute % 60:02d}"


_ROWS_MAX = 60
_HEARTBEAT_SECONDS = 20.0


async def show_board(request: web.Request) -> web.Response:
    """`GET /portal/tonight`: the board of `?date=`, or of tonight."""
    return await _page(request, "page")


async def show_rows(request: web.Request) -> web.Response:
    """`GET …/rows`: the rows of `?tables=` (comma-separated ids), totals and open requests."""
    tables = frozenset(request.query.get("tables", "").split(",")[:_ROWS_MAX])
    return await _page(request, "rows", tables)


async def show_sheet(request: web.Request) -> web.Response:
    """`GET …/sheet`: the evening to print, for an outage, with venue and time of printing."""
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
    # A large board takes tens of milliseconds: it must not delay scans at the door.
    template = f"portal/tonight/{template}.html"
    return await asyncio.to_thread(portal_page, request, template, values)


async def board_events(request: web.Request) -> web.StreamResponse:
    """`GET /portal/tonight/events?date=&after=`: server-sent events for one evening.

    An event `row` names a changed reservation and its table; `reset` means: read everything.
    """
    day = asked_day(request)
    return _BoardStream(request, day.isoformat() if day else None)


class _BoardStream(web.StreamResponse):
    """A response that streams events, after the headers that every answer gets."""

    def __init__(self, request: web.Request, day: str | None) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        self.content_type = "text/event-stream"
        self.charset = "utf-8"
        self._request, self._day = request, day

    async def write_eof(self, data: bytes = b"") -> None:
        """Stream until the browser disconnects, the box stops, or the session ends."""
        feed, owner = self._request[ENVIRONMENT].feed, f"staff:{self._request[SESSION].id}"
        after = self._request.headers.get("Last-Event-ID") or self._request.query.get("after")
        with suppress(Unavailable):  # the box is stopping
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
        # The feed of live closes at once when a session is ended; the feed of test, and sessions
        # that expire, are checked here.
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
