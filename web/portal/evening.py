"""The page `/portal/tonight`: an evening's board of tables and slots, and its live feed."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from aiohttp import web

from appliance.core.i18n import isolate
from appliance.database.connection import Reader
from appliance.door.live_feed import Change, Listener
from appliance.door.verdict import fullness
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT
from appliance.reservations.holds import Hold, list_holds
from appliance.reservations.model import Reservation, expected_at, is_awaited
from appliance.reservations.rows import (
    count_evening,
    count_requests,
    list_evening,
)
from appliance.staff.sign_in import Session
from appliance.venue.model import (
    Slot,
    find_closing,
    find_tonight,
    get_venue,
    interval,
    list_slots,
    list_tables,
    minute_of,
    offered_slots,
    overlap,
)
from terminal_bridge.api.live_feed import Channel
from web.monitoring import EXAMINER
from web.portal.box import text_of
from web.portal.cookies import BOX, SESSION
from web.portal.forms import date_parameter
from web.portal.guard import find_living_session
from web.portal.responses import clock_formatter, language_of, page_values, render_page


@dataclass(frozen=True, slots=True)
class _Column:
    """A slot of the evening.

    `holds` is its time range [start, end), in minutes since midnight on the evening's date. A
    slot that is no longer offered has no name, end or time range.
    """

    start: str
    name: str
    end: str
    holds: tuple[int, int] | None = None


class _Held(NamedTuple):
    """A hold on a table, and its reservation, if it has one."""

    hold: Hold
    reservation: Reservation | None


@dataclass(frozen=True, slots=True)
class _Cell:
    """A table's reservations in one slot, or for the whole evening if `column` is None.

    `span` is the number of columns that the cell covers. `taken` is the time range of a hold that
    overlaps this slot and has no reservation in it. `gone` are those whose party has left or did
    not come.
    """

    column: _Column | None
    span: int
    reservations: tuple[Reservation, ...]
    taken: str | None = None
    gone: tuple[Reservation, ...] = ()

    @property
    def is_free(self) -> bool:
        """Return whether staff can book this table at this time."""
        is_offered = self.column is None or self.column.holds is not None
        return is_offered and not self.reservations and self.taken is None


def _read_board(
    reader: Reader, day: date | None, position: str, tables: frozenset[str] | None = None
) -> dict[str, Any]:
    """Return the board for `day` (default: tonight). `tables` limits it to these table ids.

    `position` is the live feed's position before this read. In the result, the `sections` are the
    types of table in the order of the venue's table list, a row's `place` is the table's index
    among all tables, section after section, and `waiting` lists the reservations that still need
    an answer from the venue or a payment. `present` is the start of the current or next slot, or
    None unless the board is tonight's. `requests` is the number of open requests for tonight and
    all later evenings.
    """
    tonight, venue = find_tonight(reader), get_venue(reader)
    chosen = day or tonight
    booked = list_evening(reader, chosen.isoformat())
    expected = [r for r in booked if r.holds]
    totals = count_evening(reader, chosen.isoformat())
    columns = _columns(list_slots(reader), expected, chosen, venue.evening_ends_at)
    of_seq = {reservation.seq: reservation for reservation in expected}
    by_table: defaultdict[str, list[_Held]] = defaultdict(list)
    gone: defaultdict[str, list[Reservation]] = defaultdict(list)
    for reservation in booked:
        for table_id in reservation.table_ids if reservation.is_gone else ():
            gone[table_id].append(reservation)
    for hold in list_holds(reader, chosen.isoformat()):
        by_table[hold.table_id].append(_Held(hold, of_seq.get(hold.reservation_seq or 0)))
    zone = reader.zones.zone(venue.time_zone)
    all_tables = list_tables(reader)
    sections = list(dict.fromkeys(table.type for table in all_tables))
    all_tables = sorted(all_tables, key=lambda table: sections.index(table.type))
    return {
        "day": chosen,
        "before": chosen - timedelta(days=1),
        "after": chosen + timedelta(days=1),
        "tonight": tonight,
        "columns": columns,
        "sections": sections,
        "rows": [
            {
                "place": place,
                "table": table,
                "cells": list(_cells(columns, by_table[table.id], gone[table.id])),
            }
            for place, table in enumerate(all_tables)
            if (tables is None or table.id in tables) and (table.bookable or by_table[table.id])
        ],
        "waiting": [r for r in expected if r.status in {"requested", "pending", "partial"}],
        "news": [
            r
            for r in booked
            if r.cancelled_by in {"guest", "partner"}
            and reader.now - (r.cancelled_at or 0) < _NEWS_MS
        ],
        "news_ms": _NEWS_MS,
        "requests": count_requests(reader, tonight.isoformat()),
        "totals": totals,
        "capacity": venue.capacity,
        "fullness": fullness(totals.inside.people, venue.capacity),
        "venue": venue.name,
        "now": reader.now,
        "late_minutes": venue.late_minutes if chosen == tonight else None,
        "expected_at": {r.id: expected_at(reader, r) for r in expected if is_awaited(r)},
        "position": position,
        "present": _present(columns, chosen, reader.now, zone) if chosen == tonight else None,
        "closing": find_closing(reader, chosen.isoformat()),
        "is_active": venue.status == "active",
    }


def _columns(
    slots: Iterable[Slot], expected: Iterable[Reservation], day: date, evening_ends_at: str
) -> tuple[_Column, ...]:
    """Return the slots offered on `day` and other slots that still have reservations, in order."""
    known = {
        s.start: _Column(s.start, s.name, s.end, interval(s, evening_ends_at))
        for s in offered_slots(slots, day)
    }
    for reservation in expected:
        if reservation.slot is not None:
            known.setdefault(reservation.slot, _Column(reservation.slot, "", ""))
    # A slot that starts before `evening_ends_at` is after midnight, so it comes last.
    return tuple(sorted(known.values(), key=lambda c: (c.start < evening_ends_at, c.start)))


def _present(columns: tuple[_Column, ...], day: date, now: int, zone: ZoneInfo) -> str | None:
    """Return the start of the first slot that has not ended by `now`, or else of the last slot."""
    for column in columns:
        if column.holds is not None and now < minute_of(day, column.holds[1], zone):
            return column.start
    return columns[-1].start if columns else None


def _cells(
    columns: tuple[_Column, ...], held: list[_Held], gone: list[Reservation]
) -> Iterable[_Cell]:
    """Yield the cells in a table's row, one per slot or one for a whole-evening booking."""
    reservations = [each.reservation for each in held if each.reservation is not None]
    whole = tuple(r for r in reservations if r.slot is None)
    if whole or not columns:
        yield _Cell(None, max(1, len(columns)), whole, gone=tuple(gone))
        return
    for column in columns:
        of_slot = tuple(r for r in reservations if r.slot == column.start)
        # A party that holds its table for the whole evening is shown in the first slot.
        left = (r for r in gone if (r.slot or columns[0].start) == column.start)
        yield _Cell(column, 1, of_slot, _taken(column, held), tuple(left))


def _taken(column: _Column, held: Iterable[_Held]) -> str | None:
    """Return the time range of the first overlapping hold that is not shown in this column.

    The range is text, such as `19:30–22:00`.
    """
    wanted = column.holds
    if wanted is None:
        return None
    others = [
        hold for hold, reservation in held
        if overlap((hold.starts, hold.ends), wanted)
        and (reservation is None or reservation.slot != column.start)
    ]  # fmt: skip
    first = min(others, key=lambda hold: hold.starts, default=None)
    return None if first is None else f"{_time(first.starts)}–{_time(first.ends)}"


def _time(minute: int) -> str:
    return f"{minute // 60 % 24:02d}:{minute % 60:02d}"


_NEWS_MS = 10 * 60_000  # how long the board shows a cancellation
_ROWS_MAX = 60


async def show_board(request: web.Request) -> web.Response:
    """`GET /portal/tonight`: show the board for `?date=` (default: tonight)."""
    return await _page(request, "page")


async def show_rows(request: web.Request) -> web.Response:
    """`GET …/rows`: show the totals, the open requests and the rows for `?tables=`.

    `?tables=` is a comma-separated list of table ids.
    """
    tables = frozenset(request.query.get("tables", "").split(",")[:_ROWS_MAX])
    return await _page(request, "rows", tables)


async def show_sheet(request: web.Request) -> web.Response:
    """`GET …/sheet`: show the evening's reservations as a printable list, for use in an outage."""
    return await _page(request, "sheet")


async def _page(
    request: web.Request, template: str, tables: frozenset[str] | None = None
) -> web.Response:
    environment, language = request[ENVIRONMENT], language_of(request)
    board = await environment.database.read(
        _read_board, date_parameter(request), environment.feed.position, tables
    )
    near = {-1: language.gettext("Last night"), 0: language.gettext("Tonight"),
            1: language.gettext("Tomorrow")}  # fmt: skip
    days_away = (board["day"] - board["tonight"]).days
    problems = []
    if environment.name == "live" and request[SESSION].person.may("manager"):
        checks = request.app[EXAMINER].checks
        problems = [text_of(each.finding, language) for each in checks if each.status == "fail"]
    values = {
        **page_values(request),
        "board": board,
        "problems": problems,
        "is_full": environment.database.is_full,
        "title": near.get(days_away) or language.short_date(board["day"]),
        "sees_guests": request[SESSION].person.may("host"),
        "clock": clock_formatter(request),
        "isolate": isolate,
    }
    # A large board takes tens of milliseconds to render. Use a thread so that scans are not
    # delayed.
    template = f"portal/tonight/{template}.html"
    return await asyncio.to_thread(render_page, request, template, values)


class BoardChannel(Channel):
    """The events that the board of the evening `day` receives.

    The events are:

    - `row`: a reservation has changed. The data contain its id, tables and version.
    - `totals`: the totals have changed, so the page must read them again.
    - `reset`: the page must read the whole board again.
    - `revoked`: the session has ended.
    """

    def __init__(
        self,
        request: web.Request,
        environment: Environment,
        session: Session,
        day: date,
        after: str | None,
    ) -> None:
        super().__init__(environment, f"staff:{session.id}", after)
        self._request, self._day = request, day.isoformat()

    def wants(self, change: Change) -> bool:
        """Return whether the change shows on this board."""
        found = change.reservation
        # The board shows the number of open requests for all evenings. Only reservations with the
        # source "platform" can be requests, so their changes matter on every evening.
        if found is None or found.source == "platform":
            return True
        return found.date == self._day

    def authorise(self, listener: Listener, changes: list[Change]) -> list[Change]:
        """Tell a page whose session is over so, and end it."""
        # When a session is revoked, the live environment's feed ends by itself. Check here for
        # sessions that have expired and, in the test environment, also for revoked sessions.
        session = find_living_session(self._request, self._request.app[BOX].live)
        if session is None and not listener.over.done():
            listener.end()
            return [Change(listener.position, "revoked")]
        return changes

    def describe(self, change: Change) -> tuple[str, dict[str, Any]]:
        """Return the change as above."""
        found = change.reservation
        if change.kind in {"reset", "revoked"}:
            return change.kind, {}
        if found is None:
            return "totals", {}
        return "row", {
            "reservation": found.id, "tables": found.table_ids, "version": found.version,
        }  # fmt: skip
