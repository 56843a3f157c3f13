"""Webhook endpoints: register, activate, trust, roll secrets (interface, section 2.8)."""

import hashlib
from collections.abc import Callable

from aiohttp import web

from appliance.alerts import SKEW_WARNING_S
from appliance.api_keys import list_keys
from appliance.core.errors import ChangedMeanwhile, EndpointIsInactive
from appliance.core.tokens import Keyring
from appliance.database.connection import Reader, Transaction
from appliance.http.request import ENVIRONMENT, recheck_authorisation
from appliance.outbox import EVENT_TYPES, EXTRA_TYPES
from appliance.webhooks.delivery_log import DeliveryFilter, page_deliveries, read_queue
from appliance.webhooks.endpoints import (
    Endpoint,
    activate_endpoint,
    choose_events,
    deactivate_endpoint,
    get_endpoint,
    parse_ca,
    parse_event_types,
    parse_pin,
    register_with_room,
    restrict_references,
    revoke_old_secret,
    roll_secret,
    send_test_event,
    trust_receiver,
)
from web.middleware import SERVICES
from web.portal.forms import FORM, ONCE, Form
from web.portal.guard import actor_of, id_of
from web.portal.integrations import health_of, room_page
from web.portal.responses import REFUSED, refused_on, see_other

_URL_SHOWN = 4000
_CA_MAX = 60_000
_LATEST = 5
_OFFERED = (*EVENT_TYPES, *EXTRA_TYPES)


async def new_endpoint(request: web.Request) -> web.Response:
    """`GET …/endpoints/new`: the form, with the interface's six events selected."""
    form = request.get(FORM, Form([("event", event) for event in EVENT_TYPES]))
    values: dict[str, object] = {
        "url": form.typed()["url"],
        "ticked": form.all("event"),
        "event_types": _OFFERED,
    }
    return room_page(request, "new_endpoint", values)


@refused_on(new_endpoint)
async def create_endpoint(request: web.Request, form: Form) -> web.Response:
    """`POST …/endpoints`: validate as the partner API does, and show the secret once."""
    environment, dispatcher = request[ENVIRONMENT], request[SERVICES].dispatcher
    url = await dispatcher.check_url(form.text("url", _URL_SHOWN))
    recheck_authorisation(request)  # the DNS lookup may have taken time
    events = parse_event_types(form.all("event"), _OFFERED)
    endpoint, secret = await environment.database.write(
        register_with_room, dispatcher.is_lent, environment.keyring, url, events,
        actor=actor_of(request),
    )  # fmt: skip
    request.app[ONCE].put_secret(request, endpoint.id, secret)
    return see_other(request, f"/integrations/endpoints/{endpoint.id}")


async def show_endpoint(request: web.Request) -> web.Response:
    """`GET …/endpoints/{id}`: the endpoint's state and actions.

    After an error, the certificate form stays open with the entered values.
    """
    endpoint_id = id_of(request)
    values = await request[ENVIRONMENT].database.read(_read, endpoint_id)
    typed = request[FORM].typed() if REFUSED in request else {}
    values |= {
        "secret": request.app[ONCE].take_secret(request, endpoint_id),
        "typed": typed if "which" in typed else None,
        "which": typed.get("which") or values["which"],
    }
    return room_page(request, "endpoint", values)


@refused_on(show_endpoint)
async def activate_one(request: web.Request, _form: Form) -> web.Response:
    """`POST …/activate`: check the URL again, then activate."""
    database, endpoint_id = request[ENVIRONMENT].database, id_of(request)
    endpoint = await database.read(get_endpoint, endpoint_id)
    await request[SERVICES].dispatcher.check_url(endpoint.url)
    recheck_authorisation(request)
    return await _do(request, "endpoint-activated", activate_endpoint)


async def deactivate_one(request: web.Request) -> web.Response:
    """`POST …/deactivate`: deactivate and cancel queued deliveries."""
    return await _do(request, "endpoint-deactivated", deactivate_endpoint)


@refused_on(show_endpoint)
async def choose_for_one(request: web.Request, form: Form) -> web.Response:
    """`POST …/events`: set the event types, including those beyond the interface's six."""
    events = parse_event_types(form.all("event"), _OFFERED)
    return await _do(request, "endpoint-events-chosen", choose_events, events)


async def restrict_one(request: web.Request) -> web.Response:
    """`POST …/references`: choose whose `externalRef` it receives, from the next attempt."""
    own_refs = request[FORM].text("references") == "own"
    return await _do(request, "saved", restrict_references, own_refs=own_refs)


@refused_on(show_endpoint)
async def roll_one(request: web.Request, form: Form) -> web.Response:
    """`POST …/roll`: a new secret, shown once; the old one also signs for 24 hours."""
    environment, endpoint_id = request[ENVIRONMENT], id_of(request)
    secret = await environment.database.write(
        _roll_what_was_seen, environment.keyring, endpoint_id, form.text("seen"), actor_of(request)
    )
    request.app[ONCE].put_secret(request, endpoint_id, secret)
    return see_other(request, f"/integrations/endpoints/{endpoint_id}")


async def revoke_old(request: web.Request) -> web.Response:
    """`POST …/revoke-old-secret`: stop signing with the old secret at once."""
    return await _do(request, "old-secret-revoked", revoke_old_secret)


@refused_on(show_endpoint)
async def trust_one(request: web.Request, form: Form) -> web.Response:
    """`POST …/trust`: set what its certificate is checked against."""
    which = form.one_of("which", ("system", "ca", "pin"))
    ca = parse_ca(form.lines("ca", _CA_MAX)) if which == "ca" else None
    pin = parse_pin(form.text("pin")) if which == "pin" else None
    endpoint_id = id_of(request)
    await request[ENVIRONMENT].database.write(trust_receiver, endpoint_id, ca=ca, pin=pin)
    return see_other(request, f"/integrations/endpoints/{endpoint_id}", "saved")


@refused_on(show_endpoint)
async def send_test(request: web.Request, _form: Form) -> web.Response:
    """`POST …/test`: queue a signed `webhook.test` and show its delivery."""
    delivery_ids = await request[ENVIRONMENT].database.write(send_test_event, id_of(request))
    if not delivery_ids:
        raise EndpointIsInactive(state="inactive")
    return see_other(request, f"/integrations/deliveries/{delivery_ids[0]}", "test-sent")


def secret_mark(endpoint: Endpoint) -> str:
    """Return a mark that identifies the secret without revealing it, for detecting old forms."""
    return hashlib.sha256(endpoint.secret).hexdigest()[:12]


def _roll_what_was_seen(
    tx: Transaction, keyring: Keyring, endpoint_id: str, seen: str, actor: str
) -> str:
    if seen != secret_mark(get_endpoint(tx, endpoint_id)):
        raise ChangedMeanwhile
    return roll_secret(tx, keyring, endpoint_id, actor=actor)


async def _do(
    request: web.Request, note: str, action: Callable[..., object], *args: object, **kwargs: object
) -> web.Response:
    endpoint_id, actor = id_of(request), actor_of(request)
    await request[ENVIRONMENT].database.write(action, endpoint_id, *args, actor=actor, **kwargs)
    return see_other(request, f"/integrations/endpoints/{endpoint_id}", note)


def _read(reader: Reader, endpoint_id: str) -> dict[str, object]:
    endpoint = get_endpoint(reader, endpoint_id)
    latest = page_deliveries(reader, DeliveryFilter(endpoint_id), size=_LATEST)
    return {
        "endpoint": endpoint,
        "line": [key for key in list_keys(reader) if key.lineage == endpoint.lineage],
        "queue": read_queue(reader, endpoint_id),
        "latest": latest.deliveries,
        "event_types": _OFFERED,
        "health": health_of(reader, endpoint),
        "skew_most": SKEW_WARNING_S,
        "seen": secret_mark(endpoint),
        "old_signs": (endpoint.previous_secret_expires_at or 0) > reader.now,
        "is_plain": endpoint.url[:5].lower() == "http:",
        "which": "pin" if endpoint.pin else "ca" if endpoint.ca else "system",
    }
