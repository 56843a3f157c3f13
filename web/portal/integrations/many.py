"""Replaying many deliveries: counted before, confirmed once, followed while it is done."""

from aiohttp import web

from appliance.errors import Refusal
from appliance.model.endpoint import Endpoint
from appliance.store.connection import Reader
from appliance.store.delivery_pages import count_deliveries
from appliance.store.endpoint_queues import read_queue
from appliance.store.endpoints import get_endpoint, list_endpoints
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import language_of, refusal_text, see_other
from web.portal.forms import FORM, field_error
from web.portal.guard import id_of
from web.portal.integrations.asked import AskedPeriod, read_period
from web.portal.integrations.pages import memory, read_surroundings, room_page

_WATCHED_SECONDS = 120.0


async def ask_replay(request: web.Request) -> web.Response:
    """`GET …/replay`: which deliveries, and how many they are."""
    database = request[ENVIRONMENT].database
    around = await database.read(read_surroundings)
    asked = read_period(lambda name: request.query.get(name, ""), around.zone)
    endpoints, count = await database.read(_count, asked)
    endpoint = next((e for e in endpoints if e.id == asked.endpoint_id), None)
    values: dict[str, object] = {
        "asked": asked,
        "endpoints": endpoints,
        "endpoint": endpoint,
        "count": count,
    }
    return room_page(request, "replay", around, values)


async def start_replay(request: web.Request) -> web.Response:
    """`POST …/replay`: begin, and on to its progress; a second click leads to the same one."""
    form, environment = request[FORM], request[ENVIRONMENT]
    around = await environment.database.read(read_surroundings)
    asked = read_period(form.text, around.zone)
    if asked.selection is None:
        raise field_error("endpoint", "une adresse de la liste.", "one of the list.")
    selection = asked.selection
    await environment.database.read(get_endpoint, selection.endpoint_id)

    _, count = await environment.database.read(_count, asked)
    replay = memory(request).replays.start(environment, selection, count)
    return see_other(request, f"/integrations/replays/{replay.id}")


async def show_replay(request: web.Request) -> web.Response:
    """`GET …/replays/{id}`: how far it is; with `?part=1` only that."""
    environment, replays = request[ENVIRONMENT], memory(request).replays
    try:
        replay = replays.get(environment, id_of(request))
    except Refusal:  # of before the last start: the log knows what became of it
        return see_other(request, "/integrations/deliveries")
    database, endpoint_id = environment.database, replay.selection.endpoint_id
    around = await database.read(read_surroundings)
    queue = await database.read(read_queue, endpoint_id)
    problem = replay.refusal and refusal_text(replay.refusal, language_of(request))
    values: dict[str, object] = {
        "replay": replay,
        "queue": queue,
        "endpoint": await database.read(get_endpoint, endpoint_id),
        "is_moving": replays.is_watched(replay, _WATCHED_SECONDS)
        and (replay.runs or queue.pending > 0),
        "problem": problem,
    }
    return room_page(
        request, "progress" if "part" in request.query else "replaying", around, values
    )


def _count(reader: Reader, asked: AskedPeriod) -> tuple[list[Endpoint], int]:
    chosen, count = asked.selection, 0
    if chosen is not None:
        count = count_deliveries(
            reader, chosen.endpoint_id, chosen.states, chosen.since, chosen.until
        )
    return list_endpoints(reader), count
