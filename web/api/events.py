"""`GET /v1/events`: the announced events, oldest first (interface, section 4)."""

from aiohttp import web

from appliance.clock import format_instant
from appliance.core.errors import field_invalid
from appliance.http.request import ENVIRONMENT, answer
from appliance.outbox import EVENT_TYPES, EXTRA_TYPES
from appliance.webhooks.event_list import list_events
from web.api.authentication import KEY
from web.api.schemas import EventPage, ListedEvent, read_query, read_whole_number

_LIMIT_MAX = 200
_LIMIT_DEFAULT = 50
_LISTED_TYPES = (*EVENT_TYPES, *EXTRA_TYPES)


async def show_events(request: web.Request) -> web.Response:
    """Return the events after a cursor, and the cursor of the next call.

    Raises ValidationError for an invalid or unknown parameter.
    """
    query = read_query(request, ("after", "types", "limit"))
    types = query["types"].split(",") if "types" in query else []
    if not all(name in _LISTED_TYPES for name in types):
        raise field_invalid(
            "types", "it must be one of {allowed}.", allowed=", ".join(_LISTED_TYPES)
        )
    limit = read_whole_number(query, "limit", _LIMIT_DEFAULT, _LIMIT_MAX)
    found, following = await request[ENVIRONMENT].database.read(
        list_events, query.get("after"), types, limit, request[KEY].lineage
    )
    items = [ListedEvent.of(each, occurred_at=format_instant(each.occurred_at)) for each in found]
    return answer(EventPage(items=items, next=following))
