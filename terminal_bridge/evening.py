"""The evening list: who is expected, who is in."""

from datetime import date
from typing import Any

from aiohttp import web

from appliance.errors import InvalidDate
from appliance.model.evening import parse_date
from appliance.model.guest_search import asks_phone, search
from appliance.model.terminal import Terminal
from appliance.store.conflicts import list_open_conflicts
from appliance.store.connection import Reader
from appliance.store.readings import find_tonight
from appliance.store.reservations import list_evening
from appliance.store.totals import count_evening
from terminal_bridge.authentication import authenticate
from terminal_bridge.context import ENVIRONMENT, SEARCH_PHONES
from terminal_bridge.wire import answer, guest_of
from terminal_bridge.wire_events import conflict_of, totals_of


async def evening(request: web.Request) -> web.Response:
    """`GET /evening?date=&q=`: the list, and the totals of the whole evening.

    RateLimited when this terminal looks for too many phone numbers (docs/security.md, S4).
    """
    terminal = await authenticate(request, "search")
    day = None
    if "date" in request.query:
        day = parse_date(request.query["date"])
        if day is None:
            raise InvalidDate(field="date")
    query = request.query.get("q", "")
    if asks_phone(query):
        request.app[SEARCH_PHONES].spend(terminal.id)
    return answer(await request[ENVIRONMENT].database.read(_list, terminal, day, query))


def _list(reader: Reader, terminal: Terminal, day: date | None, query: str) -> dict[str, Any]:
    chosen = (day or find_tonight(reader)).isoformat()
    everybody = list_evening(reader, chosen)
    return {
        "date": chosen,
        "totals": totals_of(count_evening(reader, chosen)),
        "items": [guest_of(found) for found in search(everybody, query)],
        "conflicts": [conflict_of(conflict, terminal) for conflict in list_open_conflicts(reader)],
    }
