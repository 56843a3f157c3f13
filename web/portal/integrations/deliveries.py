"""Deliveries: the log with its filters, each one opened to its attempts, and replays."""

from dataclasses import replace

from aiohttp import web
from yarl import URL

from appliance.actions.announce import EVENT_TYPES, EXTRA_TYPES
from appliance.actions.replay_delivery import Progress, replay_deliveries, replay_delivery
from appliance.model.delivery import STATES
from appliance.model.endpoint import Endpoint
from appliance.store.connection import Reader
from appliance.store.delivery_attempts import DeliveryStory, get_delivery_story
from appliance.store.delivery_pages import count_deliveries, page_deliveries
from appliance.store.endpoints import get_endpoint, list_endpoints
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import refused_on, see_other
from web.portal.forms import Form, field_error
from web.portal.guard import id_of
from web.portal.integrations.asked import (
    AskedPeriod,
    find_sought,
    read_filter,
    read_period,
    read_place,
)
from web.portal.integrations.pages import read_surroundings, room_page
from web.portal.integrations.request_text import RequestText, request_text

_FIELDS = ("find", "endpoint", "state", "type", "from", "to")
_SOON_MS = 15_000


async def show_deliveries(request: web.Request) -> web.Response:
    """`GET …/deliveries`: newest event first, a page at a time."""
    database = request[ENVIRONMENT].database
    around = await database.read(read_surroundings)
    asked = {name: request.query.get(name, "")[:200] for name in _FIELDS}
    chosen = read_filter(asked.__getitem__, around.zone)
    if asked["find"].strip():
        sought = await database.read(find_sought, asked["find"].strip())
        if sought.delivery_id is not None:
            return see_other(request, f"/integrations/deliveries/{sought.delivery_id}")
        chosen = replace(chosen, reservation_id=sought.reservation_id or "")  # of none: nothing
    before = read_place(request.query.get("before", ""))
    found = await database.read(page_deliveries, chosen, before)
    kept = {name: value for name, value in asked.items() if value}
    here = URL(request.path).with_query(kept)
    older = None if found.older is None else here.update_query(
        before=f"{found.older[0]}.{found.older[1]}"
    )  # fmt: skip
    values: dict[str, object] = {
        "deliveries": found.deliveries,
        "asked": asked,
        "is_asked": bool(kept),
        "endpoints": await database.read(list_endpoints),
        "states": STATES,
        "event_types": (*EVENT_TYPES, *EXTRA_TYPES),
        "older": older,
        "newest": None if before is None else here,
    }
    return room_page(request, "deliveries", around, values)


async def show_delivery(request: web.Request) -> web.Response:
    """`GET …/deliveries/{id}`: its attempts and its request, or with `?part=1` those alone."""
    database = request[ENVIRONMENT].database
    around = await database.read(read_surroundings)
    story, endpoint, text = await database.read(_read, id_of(request))
    delivery = story.delivery
    due_soon = delivery.due_now or delivery.due_at < around.now + _SOON_MS
    values: dict[str, object] = {
        "delivery": delivery,
        "attempts": story.attempts,
        "endpoint": endpoint,
        "request": text,
        "is_moving": delivery.state == "pending" and due_soon and endpoint.active,
    }
    return room_page(request, "story" if "part" in request.query else "delivery", around, values)


@refused_on(show_delivery)
async def replay_one(request: web.Request, _form: Form) -> web.Response:
    """`POST …/deliveries/{id}/replay`: one new attempt now; twice is once."""
    delivery_id = id_of(request)
    replayed = await request[ENVIRONMENT].database.write(replay_delivery, delivery_id)
    note = "replayed" if replayed else "replayed-anyway"
    return see_other(request, f"/integrations/deliveries/{delivery_id}", note)


async def ask_replay(request: web.Request) -> web.Response:
    """`GET …/replay`: which deliveries, and how many they are; `?replayed=` is how many were."""
    database, replayed = request[ENVIRONMENT].database, request.query.get("replayed", "")
    around = await database.read(read_surroundings)
    asked = read_period(lambda name: request.query.get(name, ""), around.zone)
    endpoints, count = await database.read(_count, asked)
    values: dict[str, object] = {
        "asked": asked,
        "endpoints": endpoints,
        "endpoint": next((e for e in endpoints if e.id == asked.endpoint_id), None),
        "count": count,
        "replayed": int(replayed[:9]) if replayed.isascii() and replayed.isdecimal() else None,
    }
    return room_page(request, "replay", around, values)


@refused_on(ask_replay)
async def replay_many(request: web.Request, form: Form) -> web.Response:
    """`POST …/replay`: page after page, each a transaction of its own; sent twice is once."""
    database = request[ENVIRONMENT].database
    around = await database.read(read_surroundings)
    asked = read_period(form.text, around.zone)
    if asked.selection is None:
        raise field_error("endpoint", "une adresse de la liste.", "one of the list.")
    selection = asked.selection

    progress: Progress | None = None
    while progress is None or not progress.done:
        progress = await database.write(replay_deliveries, selection, progress)
    query = {"endpoint": selection.endpoint_id, "replayed": str(progress.replayed)}
    return see_other(request, str(URL("/integrations/replay").with_query(query)))


def _read(reader: Reader, delivery_id: str) -> tuple[DeliveryStory, Endpoint, RequestText]:
    story = get_delivery_story(reader, delivery_id)
    endpoint = get_endpoint(reader, story.delivery.endpoint_id)
    return story, endpoint, request_text(reader, story)


def _count(reader: Reader, asked: AskedPeriod) -> tuple[list[Endpoint], int]:
    chosen, count = asked.selection, 0
    if chosen is not None:
        count = count_deliveries(
            reader, chosen.endpoint_id, chosen.states, chosen.since, chosen.until
        )
    return list_endpoints(reader), count
