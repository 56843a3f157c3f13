"""Webhook endpoints: registered, activated, trusted, secrets rolled (interface, section 2.8)."""

import hashlib

from aiohttp import web

from appliance.actions.activate_endpoint import activate_endpoint
from appliance.actions.announce import EVENT_TYPES, EXTRA_TYPES
from appliance.actions.choose_events import choose_events
from appliance.actions.deactivate_endpoint import deactivate_endpoint
from appliance.actions.register_endpoint import parse_event_types, restrict_references
from appliance.actions.register_with_room import register_with_room
from appliance.actions.roll_secret import revoke_old_secret, roll_secret
from appliance.actions.send_test_event import send_test_event
from appliance.actions.trust_receiver import trust_receiver
from appliance.errors import Refusal
from appliance.house_errors import EndpointIsInactive
from appliance.model.api_key import ApiKey
from appliance.model.endpoint import Endpoint, parse_ca, parse_pin
from appliance.store.connection import Reader, Transaction
from appliance.store.delivery_pages import DeliveryFilter, DeliveryPage, page_deliveries
from appliance.store.endpoint_queues import EndpointQueue, read_queue
from appliance.store.endpoints import get_endpoint
from appliance.store.keys import list_keys
from appliance.tokens import Keyring
from terminal_bridge.context import ENVIRONMENT, look_again
from web.context import SERVICES
from web.portal.answer import language_of, refusal_text, see_other
from web.portal.context import SESSION
from web.portal.forms import field_error, read_form
from web.portal.guard import check_version
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
from web.portal.integrations.words import health_of, skew_words

_URL_SHOWN = 4000
_CA_MAX = 60_000
_LATEST = 5
_OFFERED = (*EVENT_TYPES, *EXTRA_TYPES)


async def new_endpoint(request: web.Request) -> web.Response:
    """`GET …/endpoints/new`: the form, with the six events ticked that partners know."""
    return await _form(request, "", list(EVENT_TYPES))


async def create_endpoint(request: web.Request) -> web.Response:
    """`POST …/endpoints`: checked as the partner interface checks it; its secret shown once."""
    form, environment = await read_form(request), request[ENVIRONMENT]
    dispatcher = request[SERVICES].dispatcher

    async def register() -> str:
        url = await dispatcher.check_url(form.text("url", _URL_SHOWN))
        look_again(request)  # a name server may take its time
        events = parse_event_types(form.all("event"), _OFFERED)
        endpoint, secret = await environment.database.write(
            register_with_room,
            dispatcher.is_lent,
            environment.keyring,
            url,
            events,
            actor=actor_of(request),
        )
        put_secret(request, endpoint.id, secret)
        return f"/integrations/endpoints/{endpoint.id}"

    try:
        path = await memory(request).once.do(request[SESSION].id, token_of(form), register)
    except Refusal as refusal:
        return await _form(request, form.text("url", 10_000), form.all("event"), refusal)
    return see_other(request, path)


async def show_endpoint(request: web.Request) -> web.Response:
    """`GET …/endpoints/{id}`: how it is doing, and what may be done with it."""
    return await _page(request, id_of(request))


async def activate_one(request: web.Request) -> web.Response:
    """`POST …/activate`: its URL is checked again first."""
    database, endpoint_id = request[ENVIRONMENT].database, id_of(request)
    try:
        endpoint = await database.read(get_endpoint, endpoint_id)
        await request[SERVICES].dispatcher.check_url(endpoint.url)
        look_again(request)
        await database.write(activate_endpoint, endpoint_id, actor=actor_of(request))
    except Refusal as refusal:
        return await _page(request, endpoint_id, refusal)
    return _done(request, "endpoint-activated")


async def deactivate_one(request: web.Request) -> web.Response:
    """`POST …/deactivate`: what waits for it is not sent."""
    database = request[ENVIRONMENT].database
    await database.write(deactivate_endpoint, id_of(request), actor=actor_of(request))
    return _done(request, "endpoint-deactivated")


async def choose_for_one(request: web.Request) -> web.Response:
    """`POST …/events`: what it hears of from now on, beyond the six of the interface too."""
    form, endpoint_id = await read_form(request), id_of(request)
    try:
        events = parse_event_types(form.all("event"), _OFFERED)
        await request[ENVIRONMENT].database.write(
            choose_events, endpoint_id, events, actor=actor_of(request)
        )
    except Refusal as refusal:
        return await _page(request, endpoint_id, refusal)
    return _done(request, "endpoint-events-chosen")


async def restrict_one(request: web.Request) -> web.Response:
    """`POST …/references`: whose `externalRef` it is told from the next attempt on."""
    form, database = await read_form(request), request[ENVIRONMENT].database
    own_refs = form.text("references") == "own"
    await database.write(
        restrict_references, id_of(request), own_refs=own_refs, actor=actor_of(request)
    )
    return _done(request, "saved")


async def roll_one(request: web.Request) -> web.Response:
    """`POST …/roll`: a new secret, shown once; for 24 hours the one before signs too."""
    form, environment = await read_form(request), request[ENVIRONMENT]
    endpoint_id, seen = id_of(request), form.text("seen")

    async def roll() -> str:
        secret = await environment.database.write(
            _roll_what_was_seen, environment.keyring, endpoint_id, seen, actor_of(request)
        )
        put_secret(request, endpoint_id, secret)
        return f"/integrations/endpoints/{endpoint_id}"

    try:
        path = await memory(request).once.do(request[SESSION].id, token_of(form), roll)
    except Refusal as refusal:
        return await _page(request, endpoint_id, refusal)
    return see_other(request, path)


async def revoke_old(request: web.Request) -> web.Response:
    """`POST …/revoke-old-secret`: only the present one signs, at once."""
    database = request[ENVIRONMENT].database
    await database.write(revoke_old_secret, id_of(request), actor=actor_of(request))
    return _done(request, "old-secret-revoked")


async def trust_one(request: web.Request) -> web.Response:
    """`POST …/trust`: what its certificate is checked against."""
    form, endpoint_id = await read_form(request), id_of(request)
    try:
        which = form.text("which")
        if which not in {"system", "ca", "pin"}:
            raise field_error("which", "un choix de la liste.", "one of the list.")
        ca = parse_ca(form.lines("ca", _CA_MAX)) if which == "ca" else None
        pin = parse_pin(form.text("pin")) if which == "pin" else None
        await request[ENVIRONMENT].database.write(trust_receiver, endpoint_id, ca=ca, pin=pin)
    except Refusal as refusal:
        return await _page(request, endpoint_id, refusal, form.typed())
    return _done(request, "saved")


async def send_test(request: web.Request) -> web.Response:
    """`POST …/test`: a signed `webhook.test`, and on to what comes of it."""
    form, database, endpoint_id = (
        await read_form(request),
        request[ENVIRONMENT].database,
        id_of(request),
    )

    async def send() -> str:
        delivery_ids = await database.write(send_test_event, endpoint_id)
        if not delivery_ids:
            raise EndpointIsInactive(state="inactive")
        return f"/integrations/deliveries/{delivery_ids[0]}"

    try:
        path = await memory(request).once.do(request[SESSION].id, token_of(form), send)
    except Refusal as refusal:
        return await _page(request, endpoint_id, refusal)
    return see_other(request, path, "test-sent")


def secret_mark(endpoint: Endpoint) -> int:
    """Tells one secret from another and nothing about it: what an edit says its author saw."""
    return int.from_bytes(hashlib.sha256(endpoint.secret).digest()[:6], "big")


def _roll_what_was_seen(
    tx: Transaction, keyring: Keyring, endpoint_id: str, seen: str, actor: str
) -> str:
    mark = secret_mark(get_endpoint(tx, endpoint_id))
    check_version(mark if seen == str(mark) else -1, mark)
    return roll_secret(tx, keyring, endpoint_id, actor=actor)


def _done(request: web.Request, note: str) -> web.Response:
    return see_other(request, f"/integrations/endpoints/{id_of(request)}", note)


async def _page(
    request: web.Request,
    endpoint_id: str,
    refusal: Refusal | None = None,
    typed: dict[str, str] | None = None,
) -> web.Response:
    """The page; `typed` is the form about its certificate, open as it was sent."""
    database, language = request[ENVIRONMENT].database, language_of(request)
    around = await database.read(read_surroundings)
    endpoint, queue, latest, line = await database.read(_read, endpoint_id)
    values: dict[str, object] = {
        "endpoint": endpoint,
        "line": line,
        "queue": queue,
        "latest": latest.deliveries,
        "event_types": _OFFERED,
        "health": health_of(endpoint, around.conditions, language),
        "skew": skew_words(endpoint, language),
        "seen": secret_mark(endpoint),
        "old_signs": (endpoint.previous_secret_expires_at or 0) > around.now,
        "is_plain": endpoint.url[:5].lower() == "http:",
        "secret": take_secret(request, endpoint_id),
        "typed": typed,
        "which": (typed or {}).get("which") or _trusted(endpoint),
        "problem": None if refusal is None else refusal_text(refusal, language),
    }
    return room_page(
        request, "endpoint", around, values, 200 if refusal is None else refusal.status
    )


def _trusted(endpoint: Endpoint) -> str:
    return "pin" if endpoint.pin else "ca" if endpoint.ca else "system"


async def _form(
    request: web.Request, url: str, ticked: list[str], refusal: Refusal | None = None
) -> web.Response:
    around = await request[ENVIRONMENT].database.read(read_surroundings)
    values: dict[str, object] = {
        "url": url,
        "ticked": ticked,
        "event_types": _OFFERED,
        "problem": None if refusal is None else refusal_text(refusal, language_of(request)),
    }
    return room_page(
        request, "new_endpoint", around, values, 200 if refusal is None else refusal.status
    )


def _read(
    reader: Reader, endpoint_id: str
) -> tuple[Endpoint, EndpointQueue, DeliveryPage, list[ApiKey]]:
    endpoint = get_endpoint(reader, endpoint_id)
    latest = page_deliveries(reader, DeliveryFilter(endpoint_id), size=_LATEST)
    line = [key for key in list_keys(reader) if key.lineage == endpoint.lineage]
    return endpoint, read_queue(reader, endpoint_id), latest, line
