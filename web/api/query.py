"""Parse query strings; each invalid parameter raises its documented error."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from aiohttp import web

from appliance.core.errors import InvalidDate, InvalidDateRange, InvalidSlot, field_invalid
from appliance.reservations.model import STATUSES
from appliance.venue.model import is_slot, parse_date

PAGE_LIMIT_MAX = 200
PAGE_LIMIT_DEFAULT = 50
_PAGE_MAX = 2**53


@dataclass(frozen=True, slots=True)
class ReservationQuery:
    """The query of `GET /v1/reservations` (interface, section 4)."""

    first: str | None
    last: str | None
    statuses: tuple[str, ...]
    page: int
    limit: int


def read_availability_query(request: web.Request) -> tuple[date, str | None]:
    """Return `date` and `slot` of `GET /v1/availability`. Raises InvalidDate or InvalidSlot."""
    query = _query_of(request)
    day, slot = parse_date(query.get("date")), query.get("slot")
    if day is None:
        raise InvalidDate(field="date")
    if slot is not None and not is_slot(slot):
        raise InvalidSlot(field="slot")
    return day, slot


def read_reservation_query(request: web.Request) -> ReservationQuery:
    """Return filters, page and limit. Invalid values raise an error; they are never clamped."""
    query = _query_of(request)
    first, last = _optional_date(query, "from"), _optional_date(query, "to")
    if first and last and first > last:
        raise InvalidDateRange(field="from")
    return ReservationQuery(
        first=first,
        last=last,
        statuses=_statuses(query.get("status")),
        page=_whole(query, "page", 1, _PAGE_MAX),
        limit=_whole(query, "limit", PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX),
    )


def read_notify_customer(request: web.Request) -> bool:
    """Return `notifyCustomer` of `DELETE /v1/reservations/{id}`; true by default."""
    text = _query_of(request).get("notifyCustomer", "true")
    if text not in {"true", "false"}:
        raise field_invalid("notifyCustomer", "true_or_false")
    return text == "true"


def _query_of(request: web.Request) -> dict[str, str]:
    """Return the query parameters. Values of a repeated parameter are joined with a comma.

    No value is dropped silently: `status` accepts a list, all others reject it.
    """
    return {name: ",".join(request.query.getall(name)) for name in request.query}


def _optional_date(query: Mapping[str, str], name: str) -> str | None:
    if name in query and parse_date(query[name]) is None:
        raise InvalidDateRange(field=name)
    return query.get(name)


def _statuses(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(dict.fromkeys(text.split(",")))
    if not all(name in STATUSES for name in names):
        raise field_invalid("status", "among", allowed=", ".join(STATUSES))
    return names


def _whole(query: Mapping[str, str], name: str, default: int, largest: int) -> int:
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= 16 and 1 <= int(text) <= largest):
        raise field_invalid(name, "whole_number", largest=largest)
    return int(text)
