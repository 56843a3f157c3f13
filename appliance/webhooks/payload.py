"""The body of a webhook and its signature (interface, sections 2.9 and 6.1)."""

import hmac
import json
from collections.abc import Sequence
from typing import Any

from appliance.clock import format_instant, optional_instant
from appliance.reservations.model import Reservation
from appliance.venue.model import Venue
from appliance.webhooks.deliveries import DueDelivery
from appliance.webhooks.endpoints import Endpoint

# Escape non-ASCII characters. The body's bytes are then the same in every common character set, so
# receivers read names correctly and compute the right signature.
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode

_SAMPLE_ID = "00000000-0000-4000-8000-000000000000"
_SAMPLE_TABLE_ID = "00000000-0000-4000-8000-000000000001"


def event_body(
    delivery: DueDelivery, reservation: Reservation | None, venue: Venue, endpoint: Endpoint
) -> bytes:
    """Return a delivery's JSON body: the event with the reservation in its current state.

    If `reservation` is None, return a test event with a complete sample.
    """
    if reservation is None:
        data = _sample(delivery.event_type, delivery.occurred_at)
    else:
        data = _reservation(reservation, with_reference=endpoint.may_read_reference(reservation))
    data["venue"] = {"id": venue.id, "name": venue.name}
    body = {
        "id": delivery.id,
        "type": delivery.event_type,
        "occurredAt": format_instant(delivery.occurred_at),
        "data": {"reservation": data},
    }
    return _encode(body).encode()


def _reservation(reservation: Reservation, *, with_reference: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "serviceReservationId": reservation.id,
        "accessCode": reservation.access_code or reservation.issued_code,
        "status": reservation.status,
        "date": reservation.date,
        "slot": reservation.slot,
        "table": {"id": reservation.table_id, "name": reservation.table_name},
        "guests": reservation.guests,
        "customerFirstName": reservation.customer_first_name or "",
        "source": reservation.source,
    }
    if with_reference and reservation.external_ref is not None:
        data["externalRef"] = reservation.external_ref
    data["checkedInAt"] = optional_instant(reservation.checked_in_at)
    data["createdAt"] = format_instant(reservation.created_at)
    data["updatedAt"] = format_instant(reservation.updated_at)
    return data


def _sample(event_type: str, occurred_at: int) -> dict[str, Any]:
    instant = format_instant(occurred_at)
    has_ended = event_type in {"reservation.cancelled", "reservation.declined"}
    return {
        "serviceReservationId": _SAMPLE_ID,
        "accessCode": "SVC-TEST",
        "status": event_type.partition(".")[2] if has_ended else "confirmed",
        "date": instant[:10],
        "slot": "20:00",
        "table": {"id": _SAMPLE_TABLE_ID, "name": "Table test"},
        "guests": 2,
        "customerFirstName": "Test",
        "source": "partner",
        "externalRef": "webhook-test",
        "checkedInAt": instant if event_type == "reservation.checked_in" else None,
        "createdAt": instant,
        "updatedAt": instant,
    }


def sign(secrets: Sequence[str], t: int, body: bytes) -> str:
    """Return the `X-Service-Signature` header: `t=<seconds>,v1=<hex>`, with one `v1` per secret.

    The HMAC key is the whole string `whsec_…` as UTF-8. During the 24 hours after a roll, there are
    two secrets.
    """
    signed = b"%d." % t + body
    digests = [hmac.digest(secret.encode(), signed, "sha256").hex() for secret in secrets]
    return f"t={t}," + ",".join(f"v1={digest}" for digest in digests)
