"""`/portal/reservations`: every reservation, found by what is known of it."""

from dataclasses import dataclass
from datetime import date

from aiohttp import web

from appliance.model.reservation import SOURCES, STATUSES, Reservation
from appliance.store.claims import list_erasure_requests
from appliance.store.connection import Reader
from appliance.store.readings import find_tonight
from appliance.store.reservation_search import Wanted, page_found
from appliance.store.reservations import get_reservation
from appliance.store.venue import list_tables
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import language_of, portal_page
from web.portal.reservations.finding import Finding, read_finding
from web.portal.reservations.words import status_word

PAGE = 50
_WAITING_MAX = 30


@dataclass(frozen=True, slots=True)
class _List:
    rows: list[Reservation]
    total: int
    page: int
    pages: int
    waiting: list[Reservation]
    waiting_total: int
    erasures: list[Reservation]
    numbers: dict[str, str]


async def show_list(request: web.Request) -> web.Response:
    """A page of the reservations that the filters ask for; requests wait on top."""
    language, database = language_of(request), request[ENVIRONMENT].database
    tonight = await database.read(find_tonight)
    finding = read_finding(request, tonight)
    found = await database.read(_read, finding, tonight.isoformat())
    days = {
        r.date: language.short_date(
            date.fromisoformat(r.date), year=not r.date.startswith(f"{tonight.year}-")
        )
        for r in (*found.rows, *found.waiting, *found.erasures)
    }
    values: dict[str, object] = {
        "found": found,
        "finding": finding,
        "shown": finding.shown,
        "days": days,
        "statuses": {status: status_word(status, language) for status in STATUSES},
        "sources": SOURCES,
        "tonight": tonight,
    }
    return portal_page(request, "portal/reservations/list.html", values)


def _read(reader: Reader, finding: Finding, tonight: str) -> _List:
    page = finding.page
    rows, total = page_found(reader, finding.wanted, page, PAGE)
    pages = max(1, -(-total // PAGE))
    if page > pages:  # those after it are gone since the address was made
        page = pages
        rows, total = page_found(reader, finding.wanted, page, PAGE)
    waiting, waiting_total = page_found(
        reader, Wanted(first=tonight, statuses=("requested",)), 1, _WAITING_MAX
    )
    numbers = {table.id: table.number for table in list_tables(reader)}
    asked = [get_reservation(reader, id_) for id_, _ in list_erasure_requests(reader)]
    return _List(rows, total, page, pages, waiting, waiting_total, asked, numbers)
