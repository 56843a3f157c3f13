"""The evening list: who is expected, who is in."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from aiohttp import web

from appliance.errors import InvalidDate
from appliance.model.evening import parse_date
from appliance.model.guest_search import search
from appliance.model.reservation import Reservation
from appliance.store.connection import Reader
from appliance.store.readings import find_tonight
from appliance.store.reservations import list_evening
from terminal_bridge.authentication import authenticate
from terminal_bridge.context import ENVIRONMENT
from terminal_bridge.wire import answer, guest_of


async def evening(request: web.Request) -> web.Response:
    """`GET /evening?date=&q=`: the list, and the totals of the whole evening."""
    await authenticate(request, "search")
    day = None
    if "date" in request.query:
        day = parse_date(request.query["date"])
        if day is None:
            raise InvalidDate(field="date")
    query = request.query.get("q", "")
    return answer(await request[ENVIRONMENT].database.read(_list, day, query))


def _list(reader: Reader, day: date | None, query: str) -> dict[str, Any]:
    chosen = (day or find_tonight(reader)).isoformat()
    everybody = list_evening(reader, chosen)
    return {
        "date": chosen,
        "totals": {
            "expected": _count([r for r in everybody if r.holds], "guests"),
            "arrived": _count([r for r in everybody if r.arrived], "arrived"),
        },
        "items": [guest_of(found) for found in search(everybody, query)],
    }


def _count(reservations: Sequence[Reservation], what: str) -> dict[str, int]:
    return {
        "people": sum(getattr(reservation, what) for reservation in reservations),
        "reservations": len(reservations),
    }
