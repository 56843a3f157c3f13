"""Webhook endpoints: listed, registered, deactivated, tried."""

from appliance import errors
from appliance.actions.announce import EVENT_TYPES
from web.api.openapi import samples
from web.api.openapi.events import describe_callbacks
from web.api.openapi.operations.operation import Operation, json_answer, json_body, path_id
from web.api.openapi.schemas.parts import Schema

TAG = "Webhook endpoints"
_LINK_TO_DEACTIVATE: Schema = {
    "deactivate": {
        "operationId": "deleteWebhook",
        "parameters": {"id": "$response.body#/id"},
        "description": "Deactivate what was just registered.",
    }
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
    listed = {"items": [samples.LISTED_ENDPOINT], "events": list(EVENT_TYPES)}
    return Operation(
        tag=TAG,
        summary="The venue's webhook endpoints",
        description="Endpoints belong to the venue: every key with the scope sees, tests and "
        "deactivates all of them. `createdByThisKey` tells yours; the URL of another's is shown "
        "without its query.",
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
        "of a venue are active at a time. What is sent to them stands under callbacks.",
        body=json_body("RegisterWebhookEndpoint", {"someEvents": some, "allEvents": everything}),
        answers={
            201: json_answer(
                "Registered.",
                "NewWebhookEndpoint",
                {"registered": created},
                links=_LINK_TO_DEACTIVATE,
            )
        },
        refusals=(
            errors.InvalidWebhookUrl(field="url", rule_fr="https attendu.", rule="https expected."),
            errors.InvalidEventType(field="events"),
            errors.TooManyEndpoints(),
        ),
        callbacks=describe_callbacks(),
    )


def _deactivate() -> Operation:
    return Operation(
        tag=TAG,
        summary="Deactivate a webhook endpoint",
        description="Nothing is sent to it any more and its waiting deliveries are cancelled. "
        "The venue's staff can activate it again in the portal, and are alerted when another key "
        "had registered it.",
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
