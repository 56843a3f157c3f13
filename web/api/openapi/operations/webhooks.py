"""Webhook endpoints: listed, registered, deactivated, tried."""

from appliance import errors
from appliance.actions.announce import EVENT_TYPES
from web.api.openapi import samples
from web.api.openapi.operations.operation import Operation, json_answer, json_body, path_id
from web.api.openapi.schemas.parts import Schema

TAG = "Webhook endpoints"
_LINKS: Schema = {
    "deactivate": {
        "operationId": "deleteWebhook",
        "parameters": {"id": "$response.body#/id"},
        "description": "Deactivate what was just registered.",
    },
    "test": {
        "operationId": "testWebhook",
        "requestBody": {"endpointId": "$response.body#/id"},
        "description": "Send a test event to what was just registered.",
    },
}


def webhook_operations() -> dict[str, Operation]:
    """Operations by id."""
    return {
        "listWebhooks": _list(),
        "createWebhook": _register(),
        "deleteWebhook": _deactivate(),
        "testWebhook": _test(),
    }


def _list() -> Operation:
    listed = {"items": [samples.ENDPOINT], "events": list(EVENT_TYPES)}
    return Operation(
        tag=TAG,
        summary="The venue's webhook endpoints",
        description="Endpoints belong to the venue: every key with the scope sees all of them.",
        answers={200: json_answer("All endpoints.", "WebhookEndpointList", {"endpoints": listed})},
    )


def _register() -> Operation:
    everything = {"url": samples.WEBHOOK_URL}
    some = {**everything, "events": samples.ENDPOINT["events"]}
    created = {**samples.ENDPOINT, "secret": samples.SECRET}
    return Operation(
        tag=TAG,
        summary="Register a webhook endpoint",
        description="Answers with the signing secret, this once. Leaving `events` out subscribes "
        "to all types that exist today; types added later are not included. At most 5 endpoints "
        "of a venue are active at a time.",
        body=json_body("RegisterWebhookEndpoint", {"someEvents": some, "allEvents": everything}),
        answers={
            201: json_answer(
                "Registered.", "NewWebhookEndpoint", {"registered": created}, links=_LINKS
            )
        },
        refusals=(
            errors.InvalidWebhookUrl(field="url", rule_fr="https attendu.", rule="https expected."),
            errors.InvalidEventType(field="events"),
            errors.TooManyEndpoints(),
        ),
    )


def _deactivate() -> Operation:
    return Operation(
        tag=TAG,
        summary="Deactivate a webhook endpoint",
        description="Nothing is sent to it any more and its waiting deliveries are cancelled. "
        "The venue's staff can activate it again in the portal.",
        parameters=(path_id("The endpoint.", samples.ENDPOINT_ID),),
        answers={
            200: json_answer(
                "Deactivated.",
                "DeactivatedWebhookEndpoint",
                {"deactivated": {"id": samples.ENDPOINT_ID, "active": False}},
            )
        },
        refusals=(errors.NotFound(),),
    )


def _test() -> Operation:
    one = {"queued": 1, "deliveryIds": [samples.DELIVERY_ID]}
    return Operation(
        tag=TAG,
        summary="Send a test event",
        description="Queues a signed `webhook.test` event with a sample reservation, whatever the "
        "endpoint subscribes to. Without `endpointId` it goes to every active endpoint; with "
        "none active, nothing is queued and the answer is still 202.",
        body=json_body(
            "WebhookTest",
            {"one": {"endpointId": samples.ENDPOINT_ID}, "every": {}},
            required=False,
        ),
        answers={
            202: json_answer(
                "Queued.",
                "WebhookTestResult",
                {"one": one, "none": {"queued": 0, "deliveryIds": []}},
            )
        },
        refusals=(
            errors.ValidationError(
                field="endpointId",
                rule_fr="endpointId : texte attendu.",
                rule="endpointId: text expected.",
            ),
            errors.NotFound(),
        ),
    )
