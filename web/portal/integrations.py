"""The page `/portal/integrations`: API keys and webhook endpoints (interface, section 2.8)."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from aiohttp import web

from appliance.api_keys import (
    READ_ONLY_SCOPES,
    SCOPES,
    ApiKey,
    IssuedKey,
    find_key,
    issue_key,
    list_keys,
    revoke_key,
    rotate_key,
)
from appliance.checks.check import SKEW_WARNING_S
from appliance.clock import Clock
from appliance.core.errors import ChangedMeanwhile, EndpointIsInactive, NotFound, field_invalid
from appliance.core.tokens import EnvironmentName
from appliance.database.connection import Reader, Transaction
from appliance.http.request import ENVIRONMENT, recheck_authorisation
from appliance.outbox import EVENT_TYPES, EXTRA_TYPES
from appliance.reservations.create import SHOWN, list_mismatches
from appliance.venue.model import fingerprint
from appliance.webhooks.delivery_log import DeliveryFilter, page_deliveries, read_queue
from appliance.webhooks.endpoints import (
    Endpoint,
    activate_endpoint,
    choose_events,
    deactivate_endpoint,
    get_endpoint,
    list_endpoints,
    parse_ca,
    parse_event_types,
    register_with_room,
    restrict_references,
    revoke_old_secret,
    roll_secret,
    send_test_event,
    trust_receiver,
)
from web.middleware import SERVICES
from web.portal.cookies import SESSION
from web.portal.forms import FORM, Form
from web.portal.guard import id_of, runs, write_as_staff
from web.portal.responses import REFUSED, portal_page, see_other

_KEY_NAME_MAX = 80
_URL_MAX = 4000
_CA_MAX = 60_000
_LATEST = 5
_SECRET_SECONDS, _SECRETS_MAX = 120.0, 500
_EVENT_TYPES = (*EVENT_TYPES, *EXTRA_TYPES)

T = TypeVar("T")


class Secrets:
    """Keeps each session's new secrets for two minutes, until they are shown, in memory only.

    This way, secrets never appear in a URL, a file or a log.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._secrets: OrderedDict[tuple[str, str], tuple[float, str]] = OrderedDict()

    def put_secret(self, request: web.Request, subject: str, secret: str) -> None:
        """Store a secret for `take_secret`. `subject` is the id of the key or endpoint."""
        until = self._clock.monotonic() + _SECRET_SECONDS
        self._secrets[request[SESSION].id, subject] = (until, secret)
        if len(self._secrets) > _SECRETS_MAX:
            self._secrets.popitem(last=False)

    def take_secret(self, request: web.Request, subject: str) -> str | None:
        """Delete this session's secret for `subject` and return it.

        Returns None if there is none or it has expired.
        """
        until, secret = self._secrets.pop((request[SESSION].id, subject), (0.0, ""))
        return secret if until >= self._clock.monotonic() else None


SECRETS = web.AppKey("secrets", Secrets)


def integrations_page(
    request: web.Request, template: str, values: dict[str, object]
) -> web.Response:
    """Return the page `portal/integrations/<template>.html`.

    The template gets `values` and the variables that all these pages use.
    """
    environment = request[ENVIRONMENT]
    common = {
        "now": environment.database.clock.now(),
        "is_full": environment.database.is_full,
        "room": f"{environment.prefix}/portal/integrations",
        "prefix": environment.prefix,
    }
    return portal_page(request, f"portal/integrations/{template}.html", {**common, **values})


async def show_overview(request: web.Request) -> web.Response:
    """`GET /portal/integrations`: list all API keys and endpoints.

    Inactive entries are collapsed.
    """
    database = request[ENVIRONMENT].database
    keys, endpoints, mismatches = await database.read(_read_overview)
    now = database.clock.now()
    values: dict[str, object] = {
        "keys": [key for key in keys if not key.is_revoked(now)],
        "revoked_keys": [key for key in keys if key.is_revoked(now)],
        "endpoints": [row for row in endpoints if row[2] != "inactive"],
        "inactive_endpoints": [row for row in endpoints if row[2] == "inactive"],
        "mismatches": mismatches,
        "scopes_of": _scopes_kind,
    }
    return integrations_page(request, "overview", values)


def _read_overview(reader: Reader) -> tuple[list[ApiKey], list[tuple[Any, ...]], int]:
    """Return the keys, (endpoint, queue, health) triples, and the number of mismatches.

    A mismatch is an idempotency key that was reused with a different body.
    """
    endpoints = [
        (endpoint, read_queue(reader, endpoint.id), _health_of(endpoint))
        for endpoint in list_endpoints(reader)
    ]
    return list_keys(reader), endpoints, len(list_mismatches(reader))


def _health_of(endpoint: Endpoint) -> str:
    """Return the name of the endpoint's health state.

    The states are `inactive`, `blocked`, `failing`, `new` and `good`.
    """
    if not endpoint.active:
        return "inactive"
    if endpoint.last_outcome == "blocked":
        return "blocked"
    if endpoint.failures_in_a_row:
        return "failing"
    return "new" if endpoint.last_success_at is None else "good"


async def show_warnings(request: web.Request) -> web.Response:
    """`GET …/warnings`: list idempotency keys that were reused with a different body."""
    database = request[ENVIRONMENT].database
    keys, found = await database.read(lambda r: (list_keys(r), list_mismatches(r)))
    values: dict[str, object] = {
        "groups": [
            ([k for k in keys if k.lineage == lineage], [m for m in found if m.lineage == lineage])
            for lineage in dict.fromkeys(m.lineage for m in found)
        ],
        "shown": SHOWN,
        "many": len(found) == SHOWN,
    }
    return integrations_page(request, "warnings", values)


async def new_key(request: web.Request) -> web.Response:
    """`GET …/keys/new`: show the form for creating an API key."""
    form = request.get(FORM, Form({"access": "all"}))
    values: dict[str, object] = {
        "scopes": SCOPES,
        "name": form.typed()["name"],
        "access": form.typed()["access"],
        "chosen": form.all("scope"),
    }
    return integrations_page(request, "new_key", values)


async def create_key(request: web.Request, form: Form) -> web.Response:
    """`POST …/keys`: create an API key and show it once."""
    name = form.needed("name", "please give a name: whose key is it?", _KEY_NAME_MAX)
    environment_name = request[ENVIRONMENT].name
    issued = await write_as_staff(request, issue_key, environment_name, name, _scopes(form))
    return _show_once(request, f"keys/{issued.id}", issued.id, issued.key)


async def show_key(request: web.Request) -> web.Response:
    """`GET …/keys/{id}`: show an API key's name, scopes and usage.

    The secret of a new key is shown once.
    """
    key_id = id_of(request)
    values = await request[ENVIRONMENT].database.read(_read_key, key_id)
    values["secret"] = request.app[SECRETS].take_secret(request, key_id)
    return integrations_page(request, "key", values)


def _read_key(reader: Reader, key_id: str) -> dict[str, Any]:
    key = find_key(reader, key_id)
    if key is None:
        raise NotFound
    line = [other for other in list_keys(reader) if other.lineage == key.lineage]
    return {
        "key": key,
        "line": line,
        "seen": fingerprint([other.id for other in line]),
        "mismatches": sum(m.lineage == key.lineage for m in list_mismatches(reader)),
    }


async def rotate_one(request: web.Request, form: Form) -> web.Response:
    """`POST …/keys/{id}/rotate`: create a successor to an API key and show it once."""
    ends, environment_name = form.text("old") == "ends", request[ENVIRONMENT].name
    seen, key_id = form.text("seen", 64), id_of(request)
    issued = await write_as_staff(
        request, _rotate_as_seen, seen, environment_name, key_id, ends=ends
    )
    return _show_once(request, f"keys/{issued.id}", issued.id, issued.key)


def _rotate_as_seen(
    tx: Transaction, seen: str, environment_name: EnvironmentName, key_id: str,
    *, ends: bool, actor: str,
) -> IssuedKey:  # fmt: skip
    """Run `rotate_key`.

    Raises ChangedMeanwhile if a key of the same lineage was issued after the form was shown.
    """
    if seen != _read_key(tx, key_id)["seen"]:
        raise ChangedMeanwhile
    return rotate_key(tx, environment_name, key_id, ends=ends, actor=actor)


async def revoke_one(request: web.Request, _form: Form) -> web.Response:
    """`POST …/keys/{id}/revoke`: revoke an API key. Further calls with it are rejected."""
    key_id = id_of(request)
    if not await write_as_staff(request, revoke_key, key_id):
        raise NotFound
    return see_other(request, f"/integrations/keys/{key_id}", "key-revoked")


def _show_once(request: web.Request, path: str, subject: str, secret: str) -> web.Response:
    """Redirect to the page at `path`, which shows `secret` once.

    `subject` is the id of the secret's key or endpoint.
    """
    request.app[SECRETS].put_secret(request, subject, secret)
    return see_other(request, f"/integrations/{path}")


def _scopes_kind(key: ApiKey) -> str:
    """Return the key's kind of scopes: `all`, `read` (read-only) or `chosen` (a selection)."""
    if key.scopes == SCOPES:
        return "all"
    return "read" if key.scopes == READ_ONLY_SCOPES else "chosen"


def _scopes(form: Form) -> tuple[str, ...]:
    """Return the scopes selected for a new key. Raises ValidationError if none is selected."""
    access = form.one_of("access", ("all", "read", "chosen"))
    if access != "chosen":
        return SCOPES if access == "all" else READ_ONLY_SCOPES
    chosen = tuple(scope for scope in SCOPES if scope in form.all("scope"))
    if not chosen:
        raise field_invalid("scope", "please give at least one right.")
    return chosen


async def new_endpoint(request: web.Request) -> web.Response:
    """`GET …/endpoints/new`: show the form for registering an endpoint.

    The interface's six event types are selected by default.
    """
    form = request.get(FORM, Form([("event", event) for event in EVENT_TYPES]))
    values: dict[str, object] = {
        "url": form.typed()["url"],
        "ticked": form.all("event"),
        "event_types": _EVENT_TYPES,
    }
    return integrations_page(request, "new_endpoint", values)


async def create_endpoint(request: web.Request, form: Form) -> web.Response:
    """`POST …/endpoints`: register a webhook endpoint and show its secret once.

    The URL is checked in the same way as in the partner API. Unlike in the partner API, the event
    types in EXTRA_TYPES are also allowed.
    """
    environment, dispatcher = request[ENVIRONMENT], request[SERVICES].dispatcher
    url = await dispatcher.check_url(form.text("url", _URL_MAX))
    recheck_authorisation(request)  # access may have been revoked during the DNS lookup
    events = parse_event_types(form.all("event"))
    endpoint, secret = await write_as_staff(
        request, register_with_room, dispatcher.is_echo_receiver, environment.keyring, url, events
    )
    return _show_once(request, f"endpoints/{endpoint.id}", endpoint.id, secret)


async def show_endpoint(request: web.Request) -> web.Response:
    """`GET …/endpoints/{id}`: show an endpoint's state, settings and latest deliveries.

    If the certificate form was rejected, it is shown expanded, with the entered values.
    """
    endpoint_id = id_of(request)
    values = await request[ENVIRONMENT].database.read(_read_endpoint, endpoint_id)
    typed = request[FORM].typed() if REFUSED in request else {}
    values |= {
        "secret": request.app[SECRETS].take_secret(request, endpoint_id),
        "ca": typed.get("ca", values["endpoint"].ca or ""),
    }
    return integrations_page(request, "endpoint", values)


def _read_endpoint(reader: Reader, endpoint_id: str) -> dict[str, Any]:
    endpoint = get_endpoint(reader, endpoint_id)
    latest = page_deliveries(reader, DeliveryFilter(endpoint_id), size=_LATEST)
    return {
        "endpoint": endpoint,
        "line": [key for key in list_keys(reader) if key.lineage == endpoint.lineage],
        "queue": read_queue(reader, endpoint_id),
        "latest": latest.deliveries,
        "event_types": _EVENT_TYPES,
        "health": _health_of(endpoint),
        "skew_most": SKEW_WARNING_S,
        "seen": _fingerprint(endpoint),
        "old_signs": (endpoint.previous_secret_expires_at or 0) > reader.now,
    }


async def activate_one(request: web.Request, _form: Form) -> web.Response:
    """`POST …/activate`: check the endpoint's URL again and activate the endpoint."""
    endpoint = await request[ENVIRONMENT].database.read(get_endpoint, id_of(request))
    await request[SERVICES].dispatcher.check_url(endpoint.url)
    recheck_authorisation(request)
    await write_as_staff(request, activate_endpoint, endpoint.id)
    return _to_endpoint(request, "endpoint-activated")


async def choose_for_one(request: web.Request, form: Form) -> web.Response:
    """`POST …/events`: set the event types that an endpoint receives."""
    endpoint_id, events = id_of(request), parse_event_types(form.all("event"))
    seen = form.text("seen")
    await write_as_staff(request, _as_seen, endpoint_id, seen, choose_events, endpoint_id, events)
    return _to_endpoint(request, "endpoint-events-chosen")


deactivate_one = runs(deactivate_endpoint, "/integrations/endpoints/{id}", "endpoint-deactivated")
revoke_old = runs(revoke_old_secret, "/integrations/endpoints/{id}", "old-secret-revoked")


async def restrict_one(request: web.Request, form: Form) -> web.Response:
    """`POST …/references`: choose whose `externalRef` values an endpoint receives.

    These are either the values of all partners or only those of the endpoint's own partner. The
    choice applies from the next delivery attempt.
    """
    own_refs = form.text("references") == "own"
    await write_as_staff(request, restrict_references, id_of(request), own_refs=own_refs)
    return _to_endpoint(request, "saved")


async def roll_one(request: web.Request, form: Form) -> web.Response:
    """`POST …/roll`: create a new secret and show it once.

    For 24 hours, deliveries are also signed with the old secret.
    """
    keyring, endpoint_id = request[ENVIRONMENT].keyring, id_of(request)
    seen = form.text("seen")
    secret = await write_as_staff(
        request, _as_seen, endpoint_id, seen, roll_secret, keyring, endpoint_id
    )
    return _show_once(request, f"endpoints/{endpoint_id}", endpoint_id, secret)


def _as_seen(
    tx: Transaction, endpoint_id: str, seen: str, action: Callable[..., T],
    *args: object, actor: str,
) -> T:  # fmt: skip
    """Run `action(tx, *args)`.

    Raises ChangedMeanwhile if the endpoint's secret or events have changed since the form was
    shown.
    """
    if seen != _fingerprint(get_endpoint(tx, endpoint_id)):
        raise ChangedMeanwhile
    return action(tx, *args, actor=actor)


def _fingerprint(endpoint: Endpoint) -> str:
    """Return a short hash of the endpoint's secret and events, which does not reveal the secret."""
    return hashlib.sha256(repr((endpoint.secret, endpoint.events)).encode()).hexdigest()[:12]


async def trust_one(request: web.Request, form: Form) -> web.Response:
    """`POST …/trust`: choose how an endpoint's TLS certificate is verified.

    It is checked against the given authority or, if there is none, against the system's.
    """
    text = form.lines("ca", _CA_MAX)
    ca = parse_ca(text) if text else None
    await request[ENVIRONMENT].database.write(trust_receiver, id_of(request), ca)
    return _to_endpoint(request, "saved")


async def send_test(request: web.Request, _form: Form) -> web.Response:
    """`POST …/test`: queue a signed `webhook.test` event and show its delivery."""
    delivery_ids = await request[ENVIRONMENT].database.write(send_test_event, id_of(request))
    if not delivery_ids:
        raise EndpointIsInactive
    return see_other(request, f"/integrations/deliveries/{delivery_ids[0]}", "test-sent")


def _to_endpoint(request: web.Request, note: str) -> web.Response:
    return see_other(request, f"/integrations/endpoints/{id_of(request)}", note)
