"""The page `/portal/reservations`: the list of reservations, with filters and a CSV export."""

from collections.abc import AsyncIterator
from datetime import date, datetime
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from appliance.core.errors import ApiError, InvalidDate, field_invalid
from appliance.core.i18n import Language
from appliance.core.phone_numbers import write_phone_cell
from appliance.core.text import BYTE_ORDER_MARK, write_cell, write_cells
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT
from appliance.reservations.model import SOURCES, STATUSES, Reservation
from appliance.reservations.rows import (
    find_reservations,
    get_reservation,
    list_erasure_requests,
    sum_payments,
)
from appliance.reservations.search import Order, Wanted, list_found, page_found
from appliance.staff.audit_log import record_audit
from appliance.venue.model import find_tonight, get_venue, list_tables, parse_date, seat_together
from web.portal.forms import Form, number_parameter
from web.portal.guard import actor_of
from web.portal.reservation_form import SOURCE_WORDS, STATUS_WORDS
from web.portal.responses import REFUSED, clock_formatter, language_of, portal_page, send_file

_PAGE = 50
_TEXT_MAX = 200
_UNASKED = {"page", "note", "lang"}  # query parameters that are not filters
_WAITING_MAX = 30
_BATCH = 500


async def show_list(request: web.Request) -> web.Response:
    """`GET /portal/reservations`: show open requests and a page of the filtered reservations."""
    database = request[ENVIRONMENT].database
    tonight = await database.read(find_tonight)
    wanted = _read_wanted(request, tonight)
    if fault := _find_fault(wanted):
        request[REFUSED] = fault  # shown at its field, with the submitted filters
    page = number_parameter(request, "page") or 1
    fields = {
        "from": wanted.first or "", "to": wanted.last or "", "status": wanted.statuses,
        "source": wanted.sources, "q": wanted.text, "order": wanted.order,
    }  # fmt: skip

    def wanted_at(page: int | None = None) -> str:
        return urlencode(fields if page is None else {**fields, "page": page}, doseq=True)

    values = {
        "found": None if fault else await database.read(_read, wanted, page, tonight.isoformat()),
        "wanted": wanted,
        "is_asked": bool(request.query.keys() - _UNASKED),
        "wanted_at": wanted_at,
        "year": tonight.year,
        "statuses": STATUS_WORDS,
        "sources": SOURCES,
        "clock": clock_formatter(request),
    }
    return portal_page(request, "portal/reservations/list.html", values)


def _read_wanted(request: web.Request, tonight: date) -> Wanted:
    """Return the filters in the URL. Without filters, select tonight and all later evenings.

    Unknown statuses, sources and sort orders are ignored. The dates may be invalid.
    """
    form = Form(request.query)
    first, last = form.text("from") or None, form.text("to") or None
    if not request.query.keys() - _UNASKED:
        first = tonight.isoformat()
    orders: tuple[Order, ...] = ("evening", "latest-evening", "newest")
    return Wanted(
        first,
        last,
        tuple(status for status in STATUSES if status in form.all("status")),
        tuple(source for source in SOURCES if source in form.all("source")),
        " ".join(request.query.get("q", "").split())[:_TEXT_MAX],
        next((order for order in orders if order == form.text("order")), orders[0]),
    )


def _find_fault(wanted: Wanted) -> ApiError | None:
    """Return the error in the dates, or None."""
    for name, text in (("from", wanted.first), ("to", wanted.last)):
        if text and parse_date(text) is None:
            return InvalidDate(field=name)
    if wanted.first and wanted.last and wanted.first > wanted.last:
        return field_invalid("to", "the last day must not be before the first.")
    return None


def _read(reader: Reader, wanted: Wanted, page: int, tonight: str) -> dict[str, Any]:
    rows, total = page_found(reader, wanted, page, _PAGE)
    pages = max(1, -(-total // _PAGE))
    if page > pages:  # the list is now shorter, so show its last page
        page = pages
        rows, total = page_found(reader, wanted, page, _PAGE)
    requests = Wanted(first=tonight, statuses=("requested",))
    waiting, waiting_total = page_found(reader, requests, 1, _WAITING_MAX)
    return {
        "rows": rows,
        "total": total,
        "page": page,
        "pages": pages,
        "waiting": waiting,
        "waiting_total": waiting_total,
        "erasures": [get_reservation(reader, id_) for id_, _ in list_erasure_requests(reader)],
    }


async def export_list(request: web.Request) -> web.StreamResponse:
    """`GET …/export.csv`: download the whole filtered list as CSV, in the same order."""
    language, database = language_of(request), request[ENVIRONMENT].database
    wanted = _read_wanted(request, await database.read(find_tonight))
    if fault := _find_fault(wanted):
        raise fault
    ids = await database.read(list_found, wanted)
    await database.write(record_audit, actor_of(request), "exported", name="reservations.csv")
    venue, tables = await database.read(lambda r: (get_venue(r), list_tables(r)))
    zone = database.zones.zone(venue.time_zone)
    at_table = {table.id: table for table in tables}

    def line(r: Reservation, paid: int) -> bytes:
        table = seat_together([at_table[id_] for id_ in r.table_ids])
        cells = (
            r.date, r.slot, r.table_number, r.customer_name,
            write_phone_cell(r.customer_phone, r.phone_numbers), r.customer_email,
            r.guests, r.arrived,
            language.gettext(STATUS_WORDS[r.shown_status]),
            language.gettext(SOURCE_WORDS[r.source]), r.access_code, r.external_ref, r.notes,
            "VIP" if r.vip else None, paid, table.minimum_spend, venue.currency,
            time_text(r.created_at), time_text(r.checked_in_at), time_text(r.left_at), r.id,
        )  # fmt: skip
        return write_cells(map(write_cell, cells)) + b"\r\n"

    def time_text(at: int | None) -> str | None:
        return f"{datetime.fromtimestamp(at / 1000, zone):%Y-%m-%d %H:%M}" if at else None

    def read(reader: Reader, batch: list[str]) -> bytes:
        found = find_reservations(reader, batch)
        return b"".join(
            line(found[id_], sum_payments(reader, id_)) for id_ in batch if id_ in found
        )

    async def chunks() -> AsyncIterator[bytes]:
        yield BYTE_ORDER_MARK + write_cells(_columns(language)) + b"\r\n"
        for begin in range(0, len(ids), _BATCH):
            yield await database.read(read, ids[begin : begin + _BATCH])

    name = f"reservations-{venue.slug}.csv"
    return await send_file(request, chunks(), "text/csv; charset=utf-8", name)


def _columns(language: Language) -> list[str]:
    """Return the column names in `language`. Their order is the same in every language."""
    _ = language.gettext
    return [
        _("Date"), _("Slot"), _("Table"), _("Name"), _("Phone"), _("Email"), _("Guests"),
        _("Arrived"), _("Status"), _("Source"), _("Code"), _("Partner’s reference"),
        _("Notes"), _("VIP"), _("Paid"), _("Minimum spend"), _("Currency"), _("Created"),
        _("Checked in at"), _("Left at"), _("Identifier"),
    ]  # fmt: skip
