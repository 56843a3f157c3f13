"""List, register, deactivate and test webhook endpoints (interface, sections 2.8 and 4)."""

from aiohttp import web

from appliance.clock import format_instant
from appliance.core.errors import field_invalid
from appliance.http.request import ENVIRONMENT, answer, read_object, recheck_authorisation
from appliance.outbox import EVENT_TYPES
from appliance.webhooks.endpoints import (
    Endpoint,
    deactivate_by_key,
    list_endpoints,
    parse_event_types,
    register_with_room,
    send_test_event,
)
from web.api.authentication import KEY
from web.api.schemas import (
    DeactivatedWebhookEndpoint,
    NewWebhookEndpoint,
    WebhookEndpoint,
    WebhookEndpointList,
    WebhookTestResult,
    read_id,
)
from web.middleware import SERVICES


async def list_webhooks(request: web.Request) -> web.Response:
    """Return all of the venue's endpoints and the available event types."""
    endpoints = request[ENVIRONMENT].database.peek(list_endpoints)
    items = [_list_item(endpoint, request[KEY].lineage) for endpoint in endpoints]
    return answer(WebhookEndpointList(items=items, events=EVENT_TYPES))


async def create_webhook(request: web.Request) -> web.Response:
    """Register an endpoint. Only this response contains its secret.

    Raises InvalidWebhookUrl or InvalidEventType if a member is invalid, and TooManyEndpoints if
    the limit is reached.
    """
    body, environment = await read_object(request), request[ENVIRONMENT]
    dispatcher = request[SERVICES].dispatcher
    url = await dispatcher.check_url(body.get("url"))
    recheck_authorisation(request)  # the key may have been revoked during the DNS lookup
    events = parse_event_types(body.get("events"))
    endpoint, secret = await environment.database.write(
        register_with_room,
        dispatcher.is_echo_receiver,
        environment.keyring,
        url,
        events,
        lineage=request[KEY].lineage,
        actor=f"key:{request[KEY].id}",
    )
    created_at = format_instant(endpoint.created_at)
    return answer(NewWebhookEndpoint.of(endpoint, created_at=created_at, secret=secret), 201)


async def delete_webhook(request: web.Request) -> web.Response:
    """Deactivate an endpoint and cancel its queued deliveries.

    Raises NotFound if the id is unknown.
    """
    endpoint_id = read_id(request.match_info["id"])
    await request[ENVIRONMENT].database.write(deactivate_by_key, endpoint_id, request[KEY])
    return answer(DeactivatedWebhookEndpoint(id=endpoint_id, active=False))


async def send_test_webhook(request: web.Request) -> web.Response:
    """Queue a signed `webhook.test` event for one endpoint, or for all active ones.

    Raises ValidationError if `endpointId` is not a string, and NotFound if it is unknown.
    """
    endpoint_id = (await read_object(request, optional=True)).get("endpointId")
    if endpoint_id is not None:
        if not isinstance(endpoint_id, str):
            raise field_invalid("endpointId", "text")
        endpoint_id = read_id(endpoint_id)
    delivery_ids = await request[ENVIRONMENT].database.write(send_test_event, endpoint_id)
    return answer(WebhookTestResult(queued=len(delivery_ids), delivery_ids=delivery_ids), 202)


def _list_item(endpoint: Endpoint, lineage: str) -> WebhookEndpoint:
    """Return a list item. For other lineages, omit the URL's query, which may contain a secret."""
    own = endpoint.lineage == lineage
    return WebhookEndpoint.of(
        endpoint,
        url=endpoint.url if own else endpoint.url.partition("?")[0],
        created_at=format_instant(endpoint.created_at),
        created_by_this_key=own,
    )
