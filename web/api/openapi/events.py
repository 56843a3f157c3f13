"""The callbacks of an endpoint: what it is sent, what it answers (interface, section 6)."""

from typing import Any

from appliance.actions.announce import EVENT_TYPES, EXTRA_TYPES
from web.api.openapi import samples
from web.api.openapi.schemas.parts import Schema, ref, uuid

_MEANINGS = {
    "reservation.created": (
        "A reservation appeared",
        (
            "From the platform, the staff or a partner. Block the table unless `source` is "
            "`partner`. Where a venue has several partners, `externalRef` tells which are yours."
        ),
    ),
    "reservation.confirmed": (
        "A reservation became confirmed",
        (
            "Its payment was received or the staff accepted the request. Mark it confirmed. "
            "Not sent for a reservation that was confirmed when it was created."
        ),
    ),
    "reservation.cancelled": (
        "A reservation was cancelled",
        "By the customer, the staff or a partner. Free the table.",
    ),
    "reservation.declined": (
        "A request was declined",
        "By the staff, or because nobody answered in time. Free the table.",
    ),
    "reservation.checked_in": (
        "A guest arrived",
        "They passed the entry terminal. Mark them arrived; the status does not change.",
    ),
    "webhook.test": (
        "A test was asked for",
        (
            "By `POST /v1/webhooks/test`. The data is a sample reservation. Check reception and "
            "signature."
        ),
    ),
    "reservation.checkin_reverted": (
        "A check-in was taken back",
        (
            "Nobody of the party is in any more: `checkedInAt` is null until they come again, "
            "which is another `reservation.checked_in`. Sent only to endpoints for which the "
            "venue ticked it in its portal."
        ),
    ),
}
_SIGNATURE_PATTERN = "^t=[0-9]+(,v1=[0-9a-f]{64})+$"


def describe_callbacks() -> dict[str, Schema]:
    """A callback for each event type; KeyError for a type that has no description.

    Not the document's `webhooks` section: of that openapi-generator makes files which neither
    Python nor TypeScript can read.
    """
    return {
        event_type: {"{$request.body#/url}": {"post": _delivery(event_type)}}
        for event_type in (*EVENT_TYPES, *EXTRA_TYPES)
    }


def _delivery(event_type: str) -> Schema:
    summary, description = _MEANINGS[event_type]
    media = {"schema": ref("Event"), "example": sample_event(event_type)}
    return {
        "operationId": f"on.{event_type}",
        "summary": summary,
        "description": description,
        "parameters": _headers(event_type),
        "requestBody": {"required": True, "content": {"application/json": media}},
        "responses": {
            "2XX": {"description": "Delivered, when it arrives within 10 seconds."},
            "default": {
                "description": "Anything else, a redirect included, is a failure: retried after "
                "1 min, 5 min, 30 min, 2 h and 12 h, then the delivery is dead. It can be "
                "replayed from the venue's portal."
            },
        },
        "security": [],
    }


def _headers(event_type: str) -> list[Schema]:
    signature = {"type": "string", "pattern": _SIGNATURE_PATTERN}
    return [
        _header("X-Service-Event", "The event type.", {"type": "string", "enum": [event_type]}),
        _header(
            "X-Service-Delivery",
            "Delivery identifier, equal to the body's `id`, the same on every attempt and replay.",
            uuid("Delivery identifier."),
        ),
        _header(
            "X-Service-Signature",
            "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<raw body>` keyed with the "
            "endpoint's secret. For 24 hours after a secret was rolled there are two `v1`: accept "
            "the delivery when either matches.",
            signature,
        ),
    ]


def _header(name: str, description: str, schema: Schema) -> Schema:
    parameter: Schema = {"name": name, "in": "header", "description": description}
    return {**parameter, "required": True, "schema": schema}


def sample_event(event_type: str) -> dict[str, Any]:
    """A delivery's body as it could arrive."""
    own = samples.OWN_RESERVATION
    status = {"reservation.cancelled": "cancelled", "reservation.declined": "declined"}
    arrived = event_type == "reservation.checked_in"
    later = arrived or event_type in EXTRA_TYPES
    at = samples.CHECKED_IN_AT if later else samples.CREATED_AT
    reservation = {
        "serviceReservationId": own["id"],
        "accessCode": own["accessCode"],
        "status": status.get(event_type, "confirmed"),
        "date": own["date"],
        "slot": own["slot"],
        "table": own["table"],
        "guests": own["guests"],
        "customerFirstName": own["customerFirstName"],
        "source": own["source"],
        "externalRef": own["externalRef"],
        "checkedInAt": at if arrived else None,
        "venue": {"id": samples.VENUE_ID, "name": samples.VENUE["venue"]["name"]},
        "createdAt": samples.CREATED_AT,
        "updatedAt": at,
    }
    return {
        "id": samples.DELIVERY_ID,
        "type": event_type,
        "occurredAt": at,
        "data": {"reservation": reservation},
    }
