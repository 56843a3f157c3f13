"""`/v1/webhooks`: endpoints, test events, deliveries (interface, sections 2.8, 2.10 and 4)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aiohttp import web
from msgspec import UNSET

from appliance.clock import format_instant, optional_instant
from appliance.core.errors import NotFound, field_invalid, not_among
from appliance.database.connection import Reader
from appliance.http.request import (
    ENVIRONMENT,
    answer,
    parse_instant,
    read_object,
    recheck_authorisation,
)
from appliance.outbox import EVENT_TYPES, EXTRA_TYPES
from appliance.reservations.request import check_members
from appliance.webhooks import delivery_log, endpoints
from appliance.webhooks.deliveries import STATES
from web.api import schemas
from web.api.authentication import KEY
from web.api.schemas import read_id, read_query
from web.middleware import SERVICES

_REPLAYED = ("pending", "dead", "delivered")


async def list_webhooks(request: web.Request) -> web.Response:
    """Return the venue's endpoints and the available event types.

    Raises ValidationError for an invalid or unknown parameter.
    """
    active = read_query(request, ("active",)).get("active")
    if active not in {None, "true", "false"}:
        raise field_invalid("active", "true or false expected.")
    found = request[ENVIRONMENT].database.peek(endpoints.list_endpoints)
    items = [
        _list_item(endpoint, request[KEY].lineage)
        for endpoint in found
        if active is None or endpoint.active == (active == "true")
    ]
    return answer(
        schemas.WebhookEndpointList(items=items, events=EVENT_TYPES, optional_events=EXTRA_TYPES)
    )


async def create_webhook(request: web.Request) -> web.Response:
    """Register an endpoint (interface, section 4). Only this response contains its secret.

    If the key has an active endpoint with this URL, return that one without its secret. Raises
    InvalidWebhookUrl or InvalidEventType if a member is invalid, and TooManyEndpoints if the
    limit is reached.
    """
    body, environment = await read_object(request), request[ENVIRONMENT]
    dispatcher = request[SERVICES].dispatcher
    url = await dispatcher.check_url(body.get("url"))
    recheck_authorisation(request)  # the key may have been revoked during the DNS lookup
    events = body.get("events")
    endpoint, secret = await environment.database.write(
        endpoints.register_by_key,
        dispatcher.is_echo_receiver,
        environment.keyring,
        url,
        None if events is None else endpoints.parse_event_types(events),
        request[KEY],
    )
    found = schemas.NewWebhookEndpoint.of(
        endpoint, created_at=format_instant(endpoint.created_at), secret=secret or UNSET
    )
    return answer(found, 201) if secret else answer(found, headers={"Existing-Endpoint": "true"})


async def delete_webhook(request: web.Request) -> web.Response:
    """Deactivate an endpoint of this key and cancel its queued deliveries.

    Raises NotFound if the endpoint is unknown or belongs to another lineage.
    """
    endpoint_id = read_id(request.match_info["id"])
    await request[ENVIRONMENT].database.write(
        endpoints.deactivate_by_key, endpoint_id, request[KEY]
    )
    return answer(schemas.DeactivatedWebhookEndpoint(id=endpoint_id, active=False))


async def send_test_webhook(request: web.Request) -> web.Response:
    """Queue a signed test event for one endpoint, or for all active ones.

    In the live environment, only the type `webhook.test` is allowed, because receivers would treat
    a sample of another type as a real reservation. Raises ValidationError if a member is invalid
    or unknown, and NotFound if `endpointId` is unknown.
    """
    body, environment = await _read_order(request, "endpointId", "type"), request[ENVIRONMENT]
    endpoint_id, event_type = _optional_id(body, "endpointId"), body.get("type")
    if event_type is None:
        event_type = "webhook.test"
    allowed = (*EVENT_TYPES, *EXTRA_TYPES) if environment.name == "test" else ("webhook.test",)
    if event_type not in allowed:
        raise not_among("type", allowed)
    delivery_ids = await environment.database.write(
        endpoints.send_test_event, endpoint_id, event_type
    )
    return answer(
        schemas.WebhookTestResult(queued=len(delivery_ids), delivery_ids=delivery_ids), 202
    )


async def list_deliveries(request: web.Request) -> web.Response:
    """Return a page of the deliveries to an endpoint of this key, newest event first.

    Raises ValidationError for an invalid or unknown parameter, and NotFound if the endpoint is
    unknown or belongs to another lineage, or if the delivery `before` is unknown.
    """
    database, query = request[ENVIRONMENT].database, read_query(request, ("state", "before"))
    state, before = query.get("state"), query.get("before")
    if state is not None and state not in STATES:
        raise not_among("state", STATES)
    chosen = delivery_log.DeliveryFilter(_own_endpoint_id(request), state)
    cursor = None if before is None else read_id(before)
    page = await database.read(delivery_log.page_deliveries, chosen, cursor)
    items = [_delivery(each) for each in page.deliveries]
    return answer(schemas.DeliveryList(items=items, has_more=page.older is not None))


async def replay_webhook(request: web.Request) -> web.Response:
    """Replay one delivery to an endpoint of this key, or those that the body selects.

    Without a body, replay the endpoint's dead deliveries. Raises ValidationError if a member of the
    body is invalid or unknown, NotFound if the endpoint is unknown, belongs to another lineage or
    has no such delivery, and EndpointIsInactive if it is deactivated.
    """
    body = await _read_order(request, "deliveryId", "states", "since", "until")
    delivery_id, since = _optional_id(body, "deliveryId"), parse_instant(body.get("since"), "since")
    until, states = parse_instant(body.get("until"), "until"), body.get("states")
    if states is None:
        states = ["dead"]
    if not isinstance(states, list) or not states or not {*map(str, states)} <= {*_REPLAYED}:
        raise field_invalid(
            "states", "a list of one or more of {allowed}.", allowed=", ".join(_REPLAYED)
        )
    if since is not None and until is not None and until < since:
        raise field_invalid("until", "not before since.")
    endpoint_id, database = _own_endpoint_id(request), request[ENVIRONMENT].database
    if delivery_id is None:
        chosen = delivery_log.Selection(endpoint_id, tuple(states), since or 0)
        if until is not None:
            chosen = replace(chosen, until=until)
        queued = await delivery_log.replay_selected(database, chosen)
    else:
        _own_delivery(request, endpoint_id, delivery_id)
        queued = int(await database.write(delivery_log.replay_delivery, delivery_id))
    return answer(schemas.ReplayResult(queued=queued), 202)


async def show_webhook(request: web.Request) -> web.Response:
    """Return an endpoint of this key, with its health. Raises NotFound for any other id."""
    database = request[ENVIRONMENT].database
    return answer(database.peek(_read_endpoint, _own_endpoint_id(request)))


async def change_webhook(request: web.Request) -> web.Response:
    """Change the URL or the events of an endpoint of this key, or switch it on or off.

    Raises ValidationError, InvalidWebhookUrl or InvalidEventType if a member is invalid or unknown,
    NotFound for the endpoint of another lineage, and TooManyEndpoints if 5 others are active.
    """
    body = await read_object(request)
    check_members(body, ("url", "events", "active"))
    endpoint_id, database = _own_endpoint_id(request), request[ENVIRONMENT].database
    active, events = body.get("active"), body.get("events")
    if active is not None and not isinstance(active, bool):
        raise field_invalid("active", "true or false expected.")
    dispatcher, url = request[SERVICES].dispatcher, None
    if body.get("url") is not None or active:
        known = database.peek(endpoints.get_endpoint, endpoint_id)
        url = await dispatcher.check_url(body["url"] if body.get("url") is not None else known.url)
        recheck_authorisation(request)  # the key may have been revoked during the DNS lookup
    await database.write(
        endpoints.edit_by_key,
        endpoint_id,
        request[KEY],
        url=url,
        events=None if events is None else endpoints.parse_event_types(events),
        active=active,
    )
    return answer(database.peek(_read_endpoint, endpoint_id))


async def roll_webhook(request: web.Request) -> web.Response:
    """Give an endpoint of this key a new secret; the old one signs too for 24 hours.

    Raises NotFound for the endpoint of another lineage.
    """
    await _read_order(request)
    environment, endpoint_id = request[ENVIRONMENT], _own_endpoint_id(request)
    secret, until = await environment.database.write(
        endpoints.roll_by_key, environment.keyring, endpoint_id, request[KEY]
    )
    rolled = schemas.RolledSecret(
        id=endpoint_id, secret=secret, old_valid_until=format_instant(until)
    )
    return answer(rolled)


async def show_delivery(request: web.Request) -> web.Response:
    """Return a delivery to an endpoint of this key, with its attempts.

    Raises NotFound if the endpoint is of another lineage, or has no such delivery.
    """
    endpoint_id, delivery_id = _own_endpoint_id(request), read_id(request.match_info["delivery"])
    found = _own_delivery(request, endpoint_id, delivery_id)
    story = request[ENVIRONMENT].database.peek(delivery_log.get_delivery_story, delivery_id)
    made = [schemas.Attempt.of(each, at=format_instant(each.at)) for each in story.attempts]
    return answer(schemas.DeliveryWithAttempts.of(_delivery(found), attempts_made=made))


def _own_delivery(
    request: web.Request, endpoint_id: str, delivery_id: str
) -> delivery_log.ListedDelivery:
    """Return the delivery. Raises NotFound if it is not to this endpoint."""
    database = request[ENVIRONMENT].database
    _, found = database.peek(delivery_log.get_listed_delivery, delivery_id)
    if found.endpoint_id != endpoint_id:
        raise NotFound
    return found


def _read_endpoint(reader: Reader, endpoint_id: str) -> schemas.WebhookEndpointHealth:
    endpoint = endpoints.get_endpoint(reader, endpoint_id)
    return schemas.WebhookEndpointHealth.of(
        endpoint,
        created_at=format_instant(endpoint.created_at),
        created_by_this_key=True,
        last_success_at=optional_instant(endpoint.last_success_at),
        failing_since=optional_instant(endpoints.find_failing_since(reader, endpoint)),
    )


def _own_endpoint_id(request: web.Request) -> str:
    """Return the id in the path. Raises NotFound unless a key of this lineage registered it."""
    endpoint_id, database = read_id(request.match_info["id"]), request[ENVIRONMENT].database
    database.peek(endpoints.get_own_endpoint, endpoint_id, request[KEY].lineage)
    return endpoint_id


async def _read_order(request: web.Request, *allowed: str) -> dict[str, Any]:
    """Return the optional body of a call that sends something.

    Raises ValidationError for a member that is not in `allowed`.
    """
    body = await read_object(request, optional=True)
    check_members(body, allowed)
    return body


def _optional_id(body: Mapping[str, Any], name: str) -> str | None:
    """Return the UUID in the member `name`, or None if the member is absent or null.

    Raises ValidationError if the value is not a string, and NotFound if it is not a UUID.
    """
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise field_invalid(name, "text expected.")
    return read_id(value)


def _delivery(delivery: delivery_log.ListedDelivery) -> schemas.Delivery:
    is_pending = delivery.state == "pending"
    return schemas.Delivery.of(
        delivery,
        type=delivery.event_type,
        occurred_at=format_instant(delivery.occurred_at),
        service_reservation_id=delivery.reservation_id,
        next_attempt_at=format_instant(delivery.due_at) if is_pending else None,
    )


def _list_item(endpoint: endpoints.Endpoint, lineage: str) -> schemas.WebhookEndpoint:
    """Return a list item for a key of `lineage`.

    If a key of another lineage registered the endpoint, the URL is returned without its query
    string, which may contain a secret.
    """
    own = endpoint.lineage == lineage
    return schemas.WebhookEndpoint.of(
        endpoint,
        url=endpoint.url if own else endpoint.url.partition("?")[0],
        created_at=format_instant(endpoint.created_at),
        created_by_this_key=own,
    )
