"""`/portal/integrations`: keys and endpoints at a glance, and what partners got wrong."""

from datetime import date

from aiohttp import web

from appliance.model.api_key import READ_ONLY_SCOPES, SCOPES, ApiKey
from appliance.model.endpoint import Endpoint
from appliance.store.connection import Reader
from appliance.store.endpoint_queues import EndpointQueue, read_queue
from appliance.store.endpoints import list_endpoints
from appliance.store.key_use import KeyUse, list_key_use
from appliance.store.keys import list_keys
from appliance.store.mismatches import SHOWN, Mismatch, list_mismatches
from terminal_bridge.context import ENVIRONMENT
from web.context import SERVICES
from web.portal.answer import language_of, see_other
from web.portal.integrations.pages import read_surroundings, room_page
from web.portal.integrations.words import health_of


async def show_overview(request: web.Request) -> web.Response:
    """Every key and every endpoint; those that are over stand last, folded away."""
    database, language = request[ENVIRONMENT].database, language_of(request)
    around = await database.read(read_surroundings)
    keys, endpoints, mismatches = await database.read(_read)
    told = [(key, counted(request, key, use)) for key, use in keys]
    rows = [(e, queue, health_of(e, around.conditions, language)) for e, queue in endpoints]
    values: dict[str, object] = {
        "keys": [row for row in told if not row[0].is_revoked(around.now)],
        "revoked_keys": [row for row in told if row[0].is_revoked(around.now)],
        "endpoints": [row for row in rows if row[0].active or row[2].remedy],
        "inactive_endpoints": [row for row in rows if not (row[0].active or row[2].remedy)],
        "mismatches": mismatches,
        "scopes_of": scopes_kind,
    }
    return room_page(request, "overview", around, values)


async def go_to_overview(request: web.Request) -> web.Response:
    """`GET …/keys` and `…/endpoints`, where a form was shown again: both lists are one page."""
    return see_other(request, "/integrations")


async def show_warnings(request: web.Request) -> web.Response:
    """Idempotency keys that came back with another body, by the key that sent them."""
    database, language = request[ENVIRONMENT].database, language_of(request)
    around = await database.read(read_surroundings)
    keys, found = await database.read(_read_warnings)
    by_line: dict[str, list[ApiKey]] = {}
    for key in keys:
        by_line.setdefault(key.lineage, []).append(key)
    groups: dict[str, list[Mismatch]] = {}
    for mismatch in found:
        groups.setdefault(mismatch.lineage, []).append(mismatch)
    values: dict[str, object] = {
        "groups": [(by_line.get(line, []), told) for line, told in groups.items()],
        "day": lambda day: language.short_date(date.fromisoformat(day), year=True),
        "shown": SHOWN,
        "many": len(found) == SHOWN,
    }
    return room_page(request, "warnings", around, values)


def scopes_kind(key: ApiKey) -> str:
    """`all`, `read` or `chosen`."""
    if key.scopes == SCOPES:
        return "all"
    return "read" if key.scopes == READ_ONLY_SCOPES else "chosen"


def counted(request: web.Request, key: ApiKey, use: KeyUse) -> KeyUse:
    """With what was counted since it was written last."""
    more = request[SERVICES].gate.unwritten(key.id)
    return KeyUse(use.today + more, use.week + more)


def _read(
    reader: Reader,
) -> tuple[list[tuple[ApiKey, KeyUse]], list[tuple[Endpoint, EndpointQueue]], int]:
    uses = list_key_use(reader)
    keys = [(key, uses.get(key.id, KeyUse())) for key in list_keys(reader)]
    endpoints = [(e, read_queue(reader, e.id)) for e in list_endpoints(reader)]
    return keys, endpoints, len(list_mismatches(reader))


def _read_warnings(reader: Reader) -> tuple[list[ApiKey], list[Mismatch]]:
    return list_keys(reader), list_mismatches(reader)
