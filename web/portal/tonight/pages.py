"""`/portal/tonight`: the evening board, whole or the rows that changed."""

import asyncio
from datetime import date

from aiohttp import web

from appliance.errors import InvalidDate
from appliance.model.evening import parse_date
from appliance.store.connection import Reader
from appliance.store.venue import get_venue
from terminal_bridge.context import ENVIRONMENT
from web.portal.account.pages import find_zone, moment
from web.portal.answer import language_of, portal_page
from web.portal.context import SESSION
from web.portal.tonight.board import Board, read_board

_ROWS_MAX = 60


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


def asked_date(request: web.Request) -> date | None:
    """`?date=`, or None; InvalidDate."""
    text = request.query.get("date")
    if not text:
        return None
    day = parse_date(text)
    if day is None or not date.min < day < date.max:  # the board has a day before and after
        raise InvalidDate(field="date")
    return day


async def _read(request: web.Request, tables: frozenset[str] | None = None) -> Board:
    environment = request[ENVIRONMENT]
    return await environment.database.read(
        read_board, asked_date(request), environment.feed.position, tables
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
        "long_date": language.long_date(board.day),
        **(more or {}),
    }
    # A big board takes tens of milliseconds: the door's scans need not wait for it.
    return await asyncio.get_running_loop().run_in_executor(
        None, portal_page, request, template, values
    )
