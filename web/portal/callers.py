"""Known guests, suggested while staff type the name or number of a caller."""

from dataclasses import dataclass

from aiohttp import web

from appliance.core.text import fold
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT
from appliance.reservations.model import Reservation
from appliance.reservations.search import Wanted, asks_phone, page_found, search_by_name
from web.portal.responses import portal_page

_SHOWN, _READ_MAX = 5, 10_000
_LETTERS = 3


@dataclass(frozen=True, slots=True)
class Caller:
    """A guest: their latest reservation with a name, and how many reservations they have."""

    latest: Reservation
    times: int


async def show_callers(request: web.Request) -> web.Response:
    """`GET /portal/reservations/callers`: suggest the guests that match a typed name or number.

    There are no suggestions before the third letter or the fourth digit.
    """
    typed = request.query.get("customer_phone") or request.query.get("customer_name") or ""
    text = " ".join(typed.split())[:200]
    found: list[Caller] = []
    if asks_phone(text) or sum(each.isalpha() for each in text) >= _LETTERS:
        found = await request[ENVIRONMENT].database.read(find_callers, text)
    return portal_page(request, "portal/reservations/callers.html", {"callers": found})


def find_callers(reader: Reader, text: str) -> list[Caller]:
    """Return at most five guests whose name or phone number fits `text`, the latest first."""
    rows, _ = page_found(reader, Wanted(text=text, order="newest"), 1, _READ_MAX)
    if not asks_phone(text):  # the search also finds tables and codes
        rows = search_by_name(rows, text)
    callers: dict[tuple[str, ...], Caller] = {}
    for r in rows:
        if r.customer_name is None:
            continue
        key = tuple(r.phone_numbers) or (fold(r.customer_name), r.customer_email or "")
        known = callers.get(key)
        callers[key] = Caller(known.latest if known else r, known.times + 1 if known else 1)
    return list(callers.values())[:_SHOWN]
