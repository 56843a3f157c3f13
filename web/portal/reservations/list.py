"""`/portal/reservations`: every reservation, found by what is known of it; as a spreadsheet too."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, get_args
from urllib.parse import urlencode

from aiohttp import web
from multidict import MultiDict

from appliance.actions.note_security import note_security
from appliance.errors import InvalidDate, InvalidDateRange
from appliance.i18n import Language
from appliance.model.evening import parse_date
from appliance.model.reservation import SOURCES, STATUSES, Reservation
from appliance.model.spreadsheet import BYTE_ORDER_MARK, phone_text, write_cell, write_cells
from appliance.store.claims import list_erasure_requests
from appliance.store.connection import Reader
from appliance.store.history import sum_payments
from appliance.store.readings import find_tonight
from appliance.store.reservation_search import Order, Wanted, list_by_seq, list_found, page_found
from appliance.store.reservations import get_reservation
from appliance.store.venue import get_venue, list_tables
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import HEADERS, language_of, portal_page
from web.portal.forms import Form
from web.portal.guard import actor_of
from web.portal.navigation import PortalRoute
from web.portal.reservations.new import make_new, show_new
from web.portal.reservations.one import ONE_ROUTES
from web.portal.reservations.words import source_word, status_word

PAGE = 50
_WAITING_MAX = 30
_PAGE_MAX = 1_000_000
_BATCH = 500
Line = Callable[[Reservation, int], bytes]


@dataclass(frozen=True, slots=True)
class Finding:
    """The filters as they stand in the form, and the page."""

    wanted: Wanted
    page: int
    fields: tuple[tuple[str, str], ...]

    def at(self, page: int | None = None) -> str:
        """The query of another page of the same, or without a page."""
        extra = () if page is None else (("page", str(page)),)
        return urlencode((*self.fields, *extra))

    @property
    def shown(self) -> Mapping[str, Any]:
        """The filters by the names of the form's fields."""
        return {
            "from": self.wanted.first or "",
            "to": self.wanted.last or "",
            "status": self.wanted.statuses,
            "source": self.wanted.sources,
            "q": self.wanted.text,
            "order": self.wanted.order,
        }


def read_finding(request: web.Request, tonight: date) -> Finding:
    """The filters of the address; without any, the evenings from tonight on.

    InvalidDate, InvalidDateRange; a status, source, order or page that does not exist is ignored.
    """
    query: MultiDict[str] = MultiDict(request.query)
    if not query.keys() - {"page", "note", "lang"}:
        query["from"] = tonight.isoformat()
    form = Form(query)
    first, last = _date(form, "from"), _date(form, "to")
    if first and last and first > last:
        raise InvalidDateRange(field="from")
    statuses = tuple(status for status in STATUSES if status in query.getall("status", []))
    sources = tuple(source for source in SOURCES if source in query.getall("source", []))
    orders: tuple[Order, ...] = get_args(Order)
    order = next((each for each in orders if each == query.get("order")), orders[0])
    text = form.text("q")
    wanted = Wanted(first, last, statuses, sources, text, order)
    number = query.get("page", "1")
    page = int(number) if number.isascii() and number.isdecimal() and len(number) < 8 else 1
    fields = (
        *((name, value or "") for name, value in (("from", first), ("to", last))),
        *(("status", status) for status in statuses),
        *(("source", source) for source in sources),
        ("q", text),
        ("order", order),
    )
    return Finding(wanted, min(max(page, 1), _PAGE_MAX), fields)


def _date(form: Form, name: str) -> str | None:
    text = form.text(name)
    if text and parse_date(text) is None:
        raise InvalidDate(field=name)
    return text or None


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


async def export_list(request: web.Request) -> web.StreamResponse:
    """`GET …/export.csv`: the reservations of the list, on all of its pages, in the same order."""
    language, database = language_of(request), request[ENVIRONMENT].database
    finding = read_finding(request, await database.read(find_tonight))
    seqs = await database.read(list_found, finding.wanted)
    await database.write(note_security, actor_of(request), "exported", name="reservations.csv")
    venue, tables = await database.read(lambda r: (get_venue(r), list_tables(r)))
    zone = database.zones.zone(venue.time_zone)
    at_table = {table.id: table for table in tables}

    def line(r: Reservation, paid: int) -> bytes:
        table = at_table.get(r.table_id)
        cells = (
            r.date, r.slot, table.number if table else r.table_name, r.customer_name,
            phone_text(r.customer_phone), r.customer_email, r.guests, r.arrived,
            status_word(r.status, language), source_word(r.source, language), r.access_code,
            r.external_ref, r.notes, "VIP" if r.vip else None, paid,
            table.minimum_spend if table else None, venue.currency, told(r.created_at),
            told(r.checked_in_at), r.id,
        )  # fmt: skip
        return write_cells(map(write_cell, cells)) + b"\r\n"

    def told(at: int | None) -> str | None:
        if at is None:
            return None
        return f"{datetime.fromtimestamp(at / 1000, UTC).astimezone(zone):%Y-%m-%d %H:%M}"

    async def read(some: Sequence[int]) -> bytes:
        return b"".join([line(*found) for found in await database.read(_read_paid, some)])

    first = BYTE_ORDER_MARK + write_cells(_columns(language)) + b"\r\n"
    return _CsvStream(first, seqs, read, f"reservations-{venue.slug}.csv")


def _columns(language: Language) -> list[str]:
    """The names of the columns, whose order is the same in every language."""
    _ = language.gettext
    return [
        _("Date"), _("Slot"), _("Table"), _("Name"), _("Phone"), _("Email"), _("Guests"),
        _("Arrived"), _("Status"), _("Source"), _("Code"), _("Reference of the partner"),
        _("Notes"), _("VIP"), _("Paid"), _("Minimum spend"), _("Currency"), _("Created"),
        _("Came in"), _("Identifier"),
    ]  # fmt: skip


def _read_paid(reader: Reader, seqs: Sequence[int]) -> list[tuple[Reservation, int]]:
    return [(found, sum_payments(reader, found.id)) for found in list_by_seq(reader, seqs)]


class _CsvStream(web.StreamResponse):
    """A file that is read from the database while it is written."""

    def __init__(
        self,
        first: bytes,
        seqs: Sequence[int],
        read: Callable[[Sequence[int]], Awaitable[bytes]],
        name: str,
    ) -> None:
        super().__init__(
            headers={**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
        )
        self.content_type = "text/csv"
        self.charset = "utf-8"
        self._first, self._seqs, self._read = first, seqs, read

    async def write_eof(self, data: bytes = b"") -> None:
        """Everything, some hundred lines at a time."""
        await self.write(self._first)
        for begin in range(0, len(self._seqs), _BATCH):  # cut short, it is no whole answer
            await self.write(await self._read(self._seqs[begin : begin + _BATCH]))
        await super().write_eof(data)


RESERVATION_ROUTES = (
    PortalRoute("GET", "/portal/reservations", "host", show_list),
    PortalRoute("GET", "/portal/reservations/export.csv", "manager", export_list),
    PortalRoute("GET", "/portal/reservations/new", "host", show_new),
    PortalRoute("POST", "/portal/reservations/new", "host", make_new),
    *ONE_ROUTES,
)
