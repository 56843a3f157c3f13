"""Webhook endpoints, and what they are sent (interface, sections 2.8, 2.9 and 6)."""

from appliance.actions.announce import EVENT_TYPES, EXTRA_TYPES
from web.api.openapi import samples
from web.api.openapi.schemas.parts import (
    Schema,
    access_code,
    answer_object,
    boolean,
    integer,
    list_of,
    nullable,
    ref,
    request_object,
    slot_time,
    text,
    timestamp,
    uuid,
    venue_date,
)


def webhook_schemas() -> dict[str, Schema]:
    """Component schemas by name."""
    endpoint = _endpoint_members()
    return {
        "EventType": text("What can be subscribed to.", enum=list(EVENT_TYPES)),
        "DeliveredEventType": text("What can be sent.", enum=[*EVENT_TYPES, *EXTRA_TYPES]),
        "WebhookEndpoint": answer_object(
            {
                **endpoint,
                "url": text(
                    "Where events are posted. Without its query where another key registered it.",
                    format="uri",
                ),
                "createdByThisKey": boolean(
                    "Whether your key registered it, or one that your key succeeds or that "
                    "succeeds yours."
                ),
            },
            description="A receiver of the venue's events.",
            examples=[samples.LISTED_ENDPOINT],
        ),
        "NewWebhookEndpoint": answer_object(
            {**endpoint, "secret": _secret()},
            description="The receiver just registered, with its secret.",
        ),
        "WebhookEndpointList": _endpoint_list(),
        "RegisterWebhookEndpoint": _register(),
        "DeactivatedWebhookEndpoint": _deactivated(),
        "WebhookTest": _test(),
        "WebhookTestResult": _test_result(),
        "Event": _event(),
        "EventData": answer_object({"reservation": ref("EventReservation")}),
        "EventReservation": _event_reservation(),
        "VenueName": answer_object({"id": uuid("The venue."), "name": text("Its name.")}),
    }


def _endpoint_members() -> Schema:
    return {
        "id": uuid("Identifier of the endpoint."),
        "url": text("Where events are posted.", format="uri"),
        "events": list_of(
            ref("DeliveredEventType"),
            "The types it is subscribed to. `reservation.checkin_reverted`, a check-in that was "
            "taken back, can be added by the venue alone, in its portal.",
        ),
        "active": boolean("Whether events are sent to it."),
        "createdAt": timestamp("When it was registered."),
    }


def _secret() -> Schema:
    return text(
        "Signs every delivery; the whole string, `whsec_` included, is the HMAC key. Shown only "
        "in this answer: store it now.",
        pattern="^whsec_[A-Za-z0-9_-]+$",
        examples=[samples.SECRET],
    )


def _endpoint_list() -> Schema:
    return answer_object(
        {
            "items": list_of(
                ref("WebhookEndpoint"), "The venue's endpoints, deactivated ones included."
            ),
            "events": list_of(ref("EventType"), "Every type that can be subscribed to."),
        },
        description="The endpoints of the venue, whichever key registered them.",
    )


def _register() -> Schema:
    return request_object(
        {
            "url": text(
                "Absolute address of your receiver: https, or http in the test environment; at "
                "most 2,048 characters; no user name, password or fragment; port 443 (80 for "
                "http), or 1024 and above. Private addresses are refused unless the owner of the "
                "box allowed them; the refusal names the setting and the entry.",
                format="uri",
                maxLength=2048,
                examples=[samples.WEBHOOK_URL],
            ),
            "events": nullable(
                list_of(
                    ref("EventType"),
                    "The types to receive. Leave it out for all that exist today.",
                    minItems=1,
                )
            ),
        },
        required=("url",),
        description="A receiver to register. Unknown members are ignored.",
    )


def _deactivated() -> Schema:
    return answer_object(
        {"id": uuid("The endpoint."), "active": {"type": "boolean", "const": False}},
        description="The endpoint is deactivated; its waiting deliveries are cancelled.",
    )


def _test() -> Schema:
    return request_object(
        {
            "endpointId": nullable(
                text(
                    "The endpoint to send to. Leave it out to send to every active one.",
                    examples=[samples.ENDPOINT_ID],
                )
            )
        },
        description="Whom to send to. The body may be left out.",
    )


def _test_result() -> Schema:
    return answer_object(
        {
            "queued": integer("How many deliveries were queued.", minimum=0),
            "deliveryIds": list_of(
                uuid("Delivery identifier."),
                "Their identifiers, as each will arrive in `X-Service-Delivery`.",
            ),
        },
        description="The test events are on their way.",
    )


def _event() -> Schema:
    return answer_object(
        {
            "id": uuid("Delivery identifier, equal to `X-Service-Delivery`: deduplicate on it."),
            "type": ref("DeliveredEventType"),
            "occurredAt": timestamp("When it happened, the same on every attempt."),
            "data": ref("EventData"),
        },
        description="Body of a delivery.",
    )


def _event_reservation() -> Schema:
    return answer_object(
        {
            "serviceReservationId": uuid("Identifier of the reservation."),
            "accessCode": access_code("The code that the guest may say at the door."),
            "status": ref("ReservationStatus", "State at the time of sending."),
            "date": venue_date("The evening, in venue time."),
            "slot": nullable(slot_time("Start of the slot, in venue time; null: whole evening.")),
            "table": ref("TableName"),
            "guests": integer("Size of the party.", minimum=1),
            "customerFirstName": text("First word of the customer's name; empty once erased."),
            "source": ref("ReservationSource"),
            "externalRef": text(
                "The partner's own identifier, when the reservation was created with one. The "
                "venue may let an endpoint have its own partner's alone: then it is absent on "
                "reservations of others."
            ),
            "checkedInAt": nullable(timestamp("When the guest passed the entry terminal.")),
            "venue": ref("VenueName"),
            "createdAt": timestamp("When the reservation was made."),
            "updatedAt": timestamp("When it last changed."),
        },
        optional=("externalRef", "createdAt", "updatedAt"),
        description="The reservation as it is when the event is sent.",
    )
