"""Keys: issued and shown once, rotated, revoked at once (interface, section 5)."""

from aiohttp import web

from appliance.actions.issue_key import issue_key
from appliance.actions.revoke_key import revoke_key
from appliance.actions.rotate_key import rotate_key
from appliance.errors import NotFound, Refusal
from appliance.model.api_key import READ_ONLY_SCOPES, SCOPES, ApiKey
from appliance.store.connection import Reader
from appliance.store.key_use import KeyUse, list_key_use
from appliance.store.keys import find_key, list_keys
from appliance.store.mismatches import list_mismatches
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import language_of, refusal_text, see_other
from web.portal.context import SESSION
from web.portal.forms import Form, field_error, read_form
from web.portal.integrations.overview import counted, scopes_kind
from web.portal.integrations.pages import (
    actor_of,
    id_of,
    memory,
    put_secret,
    read_surroundings,
    room_page,
    take_secret,
    token_of,
)

NAME_MAX = 80
_ACCESS = ("all", "read", "chosen")


async def new_key(request: web.Request) -> web.Response:
    """`GET …/keys/new`: the form."""
    return await _form(request, Form({"access": "all"}))


async def create_key(request: web.Request) -> web.Response:
    """`POST …/keys`: the key, on its own page, this once."""
    form, environment = await read_form(request), request[ENVIRONMENT]

    async def issue() -> str:
        issued = await environment.database.write(
            issue_key, environment.name, _name(form), _scopes(form), actor=actor_of(request)
        )
        put_secret(request, issued.id, issued.key)
        return f"/integrations/keys/{issued.id}"

    try:
        path = await memory(request).once.do(request[SESSION].id, token_of(form), issue)
    except Refusal as refusal:
        return await _form(request, form, refusal)
    return see_other(request, path)


async def show_key(request: web.Request) -> web.Response:
    """`GET …/keys/{id}`: everything about it but the key."""
    database, key_id = request[ENVIRONMENT].database, id_of(request)
    around = await database.read(read_surroundings)
    key, use, line, mismatches = await database.read(_read, key_id)
    values: dict[str, object] = {
        "key": key,
        "use": counted(request, key, use),
        "line": line,
        "kind": scopes_kind(key),
        "mismatches": mismatches,
        "secret": take_secret(request, key_id),
    }
    return room_page(request, "key", around, values)


async def rotate_one(request: web.Request) -> web.Response:
    """`POST …/keys/{id}/rotate`: its successor, shown once."""
    form, environment = await read_form(request), request[ENVIRONMENT]
    key_id = id_of(request)

    async def rotate() -> str:
        issued = await environment.database.write(
            rotate_key,
            environment.name,
            key_id,
            ends=form.text("old") == "ends",
            actor=actor_of(request),
        )
        put_secret(request, issued.id, issued.key)
        return f"/integrations/keys/{issued.id}"

    path = await memory(request).once.do(request[SESSION].id, token_of(form), rotate)
    return see_other(request, path)


async def revoke_one(request: web.Request) -> web.Response:
    """`POST …/keys/{id}/revoke`: its next call is refused."""
    key_id = id_of(request)
    database = request[ENVIRONMENT].database
    if not await database.write(revoke_key, key_id, actor=actor_of(request)):
        raise NotFound
    return see_other(request, f"/integrations/keys/{key_id}", "key-revoked")


async def _form(request: web.Request, form: Form, refusal: Refusal | None = None) -> web.Response:
    around = await request[ENVIRONMENT].database.read(read_surroundings)
    values: dict[str, object] = {
        "scopes": SCOPES,
        "name": form.text("name", 10_000),
        "access": form.text("access", 10_000),
        "chosen": form.all("scope"),
        "problem": None if refusal is None else refusal_text(refusal, language_of(request)),
    }
    return room_page(request, "new_key", around, values, 200 if refusal is None else refusal.status)


def _name(form: Form) -> str:
    name = form.text("name", NAME_MAX)
    if not name:
        raise field_error("name", "un nom : à qui est cette clé ?", "a name: whose key is it?")
    return name


def _scopes(form: Form) -> tuple[str, ...]:
    access = form.text("access")
    if access not in _ACCESS:
        raise field_error("access", "un choix de la liste.", "one of the list.")
    if access != "chosen":
        return SCOPES if access == "all" else READ_ONLY_SCOPES
    chosen = tuple(scope for scope in SCOPES if scope in form.all("scope"))
    if not chosen:
        raise field_error("scope", "au moins un droit.", "at least one right.")
    return chosen


def _read(reader: Reader, key_id: str) -> tuple[ApiKey, KeyUse, list[ApiKey], int]:
    key = find_key(reader, key_id)
    if key is None:
        raise NotFound
    line = [other for other in list_keys(reader) if other.lineage == key.lineage]
    wrong = sum(m.lineage == key.lineage for m in list_mismatches(reader))
    return key, list_key_use(reader).get(key_id, KeyUse()), line, wrong
