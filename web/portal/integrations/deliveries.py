"""Deliveries: the log with its filters, each one opened to its attempts, and replays."""

from dataclasses import astuple, replace

from aiohttp import web
from yarl import URL

from appliance.actions.announce import EVENT_TYPES, EXTRA_TYPES
from appliance.actions.replay_delivery import Progress, replay_deliveries, replay_delivery
from appliance.model.delivery import STATES
from appliance.store.connection import Reader
from appliance.store.delivery_attempts import get_delivery_story
from appliance.store.delivery_pages import count_deliveries, page_deliveries
from appliance.store.endpoints import get_endpoint, list_endpoints
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import find_zone, refused_on, see_other
from web.portal.forms import Form, asked_number, field_error
from web.portal.guard import id_of
from web.portal.integrations.asked import find_sought, read_filter, read_period, read_place
from web.portal.integrations.pages import room_page
from web.portal.integrations.request_text import request_text

_FIELDS = ("find", "endpoint", "state", "type", "from", "to")
_PERIOD = ("endpoint", "which", "from", "until")
_SOON_MS = 15_000


async def show_deliveries(request: web.Request) -> web.Response:
    """`GET …/deliveries`: newest event first, a page at a time."""
    database = request[ENVIRONMENT].database
    form = Form(request.query)
    asked = {name: form.text(name) for name in _FIELDS}
    chosen = read_filter(form, database.peek(find_zone))
    if asked["find"]:
        delivery_id, reservation_id = await database.read(find_sought, asked["find"])
        if delivery_id is not None:
            return see_other(request, f"/integrations/deliveries/{delivery_id}")
        chosen = replace(chosen, reservation_id=reservation_id or "")  # of none: nothing
    before = read_place(request.query.get("before", ""))
    found = await database.read(page_deliveries, chosen, before)
    kept = {name: value for name, value in asked.items() if value}
    here = URL(request.path).with_query(kept)
    values: dict[str, object] = {
        "deliveries": found.deliveries,
        "asked": asked,
        "is_asked": bool(kept),
        "endpoints": await database.read(list_endpoints),
        "states": STATES,
        "event_types": (*EVENT_TYPES, *EXTRA_TYPES),
        "older": found.older and here.update_query(before="{}.{}".format(*found.older)),
        "newest": before and here,
    }
    return room_page(request, "deliveries", values)


async def show_delivery(request: web.Request) -> web.Response:
    """`GET …/deliveries/{id}`: its attempts and its request, or with `?part=1` those alone."""
    values = await request[ENVIRONMENT].database.read(_read, id_of(request))
    return room_page(request, "story" if "part" in request.query else "delivery", values)


@refused_on(show_delivery)
async def replay_one(request: web.Request, _form: Form) -> web.Response:
    """`POST …/deliveries/{id}/replay`: one new attempt now; twice is once."""
    delivery_id = id_of(request)
    replayed = await request[ENVIRONMENT].database.write(replay_delivery, delivery_id)
    note = "replayed" if replayed else "replayed-anyway"
    return see_other(request, f"/integrations/deliveries/{delivery_id}", note)


async def ask_replay(request: web.Request) -> web.Response:
    """`GET …/replay`: which deliveries, and how many they are; `?replayed=` is how many were."""
    database = request[ENVIRONMENT].database
    form = Form(request.query)
    selection = read_period(form, database.peek(find_zone))
    endpoints = await database.read(list_endpoints)
    values: dict[str, object] = {
        "asked": {name: form.text(name) for name in _PERIOD},
        "selection": selection,
        "endpoints": endpoints,
        "endpoint": next((e for e in endpoints if e.id == form.text("endpoint")), None),
        "count": selection and await database.read(count_deliveries, *astuple(selection)),
        "replayed": asked_number(request, "replayed", None),
    }
    return room_page(request, "replay", values)


@refused_on(ask_replay)
async def replay_many(request: web.Request, form: Form) -> web.Response:
    """`POST …/replay`: page after page, each a transaction of its own; sent twice is once."""
    database = request[ENVIRONMENT].database
    selection = read_period(form, database.peek(find_zone))
    if selection is None:
        raise field_error("endpoint", "une adresse de la liste.", "one of the list.")
    progress: Progress | None = None
    while progress is None or not progress.done:
        progress = await database.write(replay_deliveries, selection, progress)
    query = {"endpoint": selection.endpoint_id, "replayed": str(progress.replayed)}
    return see_other(request, str(URL("/integrations/replay").with_query(query)))


def _read(reader: Reader, delivery_id: str) -> dict[str, object]:
    story = get_delivery_story(reader, delivery_id)
    delivery, endpoint = story.delivery, get_endpoint(reader, story.delivery.endpoint_id)
    due_soon = delivery.due_now or delivery.due_at < reader.now + _SOON_MS
    return {
        "delivery": delivery,
        "attempts": story.attempts,
        "endpoint": endpoint,
        "request": request_text(reader, story),
        "is_moving": delivery.state == "pending" and due_soon and endpoint.active,
    }
