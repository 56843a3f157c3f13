"""What is looked for among the reservations, as the address of the page says it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, get_args
from urllib.parse import urlencode

from aiohttp import web
from multidict import MultiDict

from appliance.errors import InvalidDate, InvalidDateRange
from appliance.model.evening import parse_date
from appliance.model.reservation import SOURCES, STATUSES
from appliance.store.reservation_search import Order, Wanted
from web.portal.forms import Form

_PAGE_MAX = 1_000_000


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
