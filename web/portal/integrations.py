"""`/portal/integrations`: overview, texts, and the page of each API key."""

from typing import Any

from aiohttp import web

from appliance.alerts import ENDPOINT_BLOCKED, list_alerts
from appliance.api_keys import (
    READ_ONLY_SCOPES,
    SCOPES,
    ApiKey,
    KeyUse,
    find_key,
    issue_key,
    list_key_use,
    list_keys,
    revoke_key,
    rotate_key,
)
from appliance.core.errors import NotFound
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT
from appliance.reservations.create import SHOWN, list_mismatches
from appliance.webhooks.delivery_log import read_queue
from appliance.webhooks.endpoints import SWITCHED_OFF, Endpoint, list_endpoints
from web.middleware import SERVICES
from web.portal.forms import FORM, ONCE, Form, field_error
from web.portal.guard import actor_of, id_of
from web.portal.responses import instants_of, portal_page, refused_on, see_other


def room_page(request: web.Request, template: str, values: dict[str, object]) -> web.Response:
    """Return `portal/integrations/<template>.html`; its texts are in `words.html`."""
    environment = request[ENVIRONMENT]
    frame: dict[str, object] = {
        "moment": instants_of(request),
        "now": environment.database.clock.now(),
        "conditions": [condition.name for condition in environment.database.peek(list_alerts)],
        "room": f"{environment.prefix}/portal/integrations",
        "prefix": environment.prefix,
    }
    return portal_page(request, f"portal/integrations/{template}.html", {**frame, **values})


def health_of(reader: Reader, endpoint: Endpoint) -> str:
    """Return the health: `switched_off`, `inactive`, `blocked`, `failing`, `new` or `good`."""
    noted = {c.name for c in list_alerts(reader) if c.subject == endpoint.id}
    if SWITCHED_OFF in noted:
        return "switched_off"
    if not endpoint.active:
        return "inactive"
    if ENDPOINT_BLOCKED in noted or endpoint.last_outcome == "blocked":
        return "blocked"
    if endpoint.failures_in_a_row:
        return "failing"
    return "new" if endpoint.last_success_at is None else "good"


NAME_MAX = 80
_ACCESS = ("all", "read", "chosen")


async def show_overview(request: web.Request) -> web.Response:
    """`GET /portal/integrations`: all keys and endpoints; inactive ones last and collapsed."""
    database = request[ENVIRONMENT].database
    keys, rows, mismatches = await database.read(_read)
    told, now = [(key, _counted(request, key, use)) for key, use in keys], database.clock.now()
    values: dict[str, object] = {
        "keys": [row for row in told if not row[0].is_revoked(now)],
        "revoked_keys": [row for row in told if row[0].is_revoked(now)],
        "endpoints": [row for row in rows if row[2] != "inactive"],
        "inactive_endpoints": [row for row in rows if row[2] == "inactive"],
        "mismatches": mismatches,
        "scopes_of": _scopes_kind,
    }
    return room_page(request, "overview", values)


async def go_to_overview(request: web.Request) -> web.Response:
    """`GET …/keys` and `…/endpoints`: redirect to the overview, which has both lists."""
    return see_other(request, "/integrations")


async def show_warnings(request: web.Request) -> web.Response:
    """Show idempotency keys that were repeated with a different body, by API key."""
    database = request[ENVIRONMENT].database
    keys, found = await database.read(lambda r: (list_keys(r), list_mismatches(r)))
    values: dict[str, object] = {
        "groups": [
            ([k for k in keys if k.lineage == line], [m for m in found if m.lineage == line])
            for line in dict.fromkeys(m.lineage for m in found)
        ],
        "shown": SHOWN,
        "many": len(found) == SHOWN,
    }
    return room_page(request, "warnings", values)


async def new_key(request: web.Request) -> web.Response:
    """`GET …/keys/new`: the form."""
    form = request.get(FORM, Form({"access": "all"}))
    values: dict[str, object] = {
        "scopes": SCOPES,
        "name": form.typed()["name"],
        "access": form.typed()["access"],
        "chosen": form.all("scope"),
    }
    return room_page(request, "new_key", values)


@refused_on(new_key)
async def create_key(request: web.Request, form: Form) -> web.Response:
    """`POST …/keys`: create a key and show it once, on a page of its own."""
    environment = request[ENVIRONMENT]
    name = form.needed("name", "un nom : à qui est cette clé ?", "a name: whose key is it?",
                       NAME_MAX)  # fmt: skip
    issued = await environment.database.write(
        issue_key, environment.name, name, _scopes(form), actor=actor_of(request)
    )
    request.app[ONCE].put_secret(request, issued.id, issued.key)
    return see_other(request, f"/integrations/keys/{issued.id}")


async def show_key(request: web.Request) -> web.Response:
    """`GET …/keys/{id}`: all data of a key except the key itself."""
    key_id = id_of(request)
    key, use, line, mismatches = await request[ENVIRONMENT].database.read(_read_key, key_id)
    values: dict[str, object] = {
        "key": key,
        "use": _counted(request, key, use),
        "line": line,
        "mismatches": mismatches,
        "secret": request.app[ONCE].take_secret(request, key_id),
    }
    return room_page(request, "key", values)


async def rotate_one(request: web.Request) -> web.Response:
    """`POST …/keys/{id}/rotate`: create the successor and show it once."""
    environment = request[ENVIRONMENT]
    issued = await environment.database.write(
        rotate_key, environment.name, id_of(request),
        ends=request[FORM].text("old") == "ends", actor=actor_of(request),
    )  # fmt: skip
    request.app[ONCE].put_secret(request, issued.id, issued.key)
    return see_other(request, f"/integrations/keys/{issued.id}")


async def revoke_one(request: web.Request) -> web.Response:
    """`POST …/keys/{id}/revoke`: reject the key from its next call on."""
    key_id = id_of(request)
    database = request[ENVIRONMENT].database
    if not await database.write(revoke_key, key_id, actor=actor_of(request)):
        raise NotFound
    return see_other(request, f"/integrations/keys/{key_id}", "key-revoked")


def _scopes_kind(key: ApiKey) -> str:
    """Return `all`, `read` or `chosen`."""
    if key.scopes == SCOPES:
        return "all"
    return "read" if key.scopes == READ_ONLY_SCOPES else "chosen"


def _counted(request: web.Request, key: ApiKey, use: KeyUse) -> KeyUse:
    """Return `use` plus the calls that are not written yet."""
    more = request[SERVICES].gate.unwritten(key.id)
    return KeyUse(use.today + more, use.week + more)


def _read(reader: Reader) -> tuple[list[tuple[ApiKey, KeyUse]], list[tuple[Any, ...]], int]:
    uses = list_key_use(reader)
    keys = [(key, uses.get(key.id, KeyUse())) for key in list_keys(reader)]
    endpoints = [
        (e, read_queue(reader, e.id), health_of(reader, e)) for e in list_endpoints(reader)
    ]
    return keys, endpoints, len(list_mismatches(reader))


def _scopes(form: Form) -> tuple[str, ...]:
    access = form.one_of("access", _ACCESS)
    if access != "chosen":
        return SCOPES if access == "all" else READ_ONLY_SCOPES
    chosen = tuple(scope for scope in SCOPES if scope in form.all("scope"))
    if not chosen:
        raise field_error("scope", "au moins un droit.", "at least one right.")
    return chosen


def _read_key(reader: Reader, key_id: str) -> tuple[ApiKey, KeyUse, list[ApiKey], int]:
    key = find_key(reader, key_id)
    if key is None:
        raise NotFound
    line = [other for other in list_keys(reader) if other.lineage == key.lineage]
    wrong = sum(m.lineage == key.lineage for m in list_mismatches(reader))
    return key, list_key_use(reader).get(key_id, KeyUse()), line, wrong
