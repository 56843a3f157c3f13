"""The body of a webhook and its signature (interface, sections 2.9 and 6.1)."""

import hmac
import json
from collections.abc import Sequence
from typing import Any

from appliance.clock import format_instant, optional_instant
from appliance.database.connection import Reader
from appliance.reservations.model import Reservation
from appliance.venue.model import (
    Venue,
    find_tonight,
    get_venue,
    list_slots,
    list_tables,
    offered_slots,
)
from appliance.webhooks.deliveries import DueDelivery
from appliance.webhooks.endpoints import Endpoint

# Escape non-ASCII characters. The body's bytes are then the same in every common character set, so
# receivers read names correctly and compute the right signature.
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode

_SAMPLE_ID = "00000000-0000-4000-8000-000000000000"
_SAMPLE_TABLE = {"id": "00000000-0000-4000-8000-000000000001", "name": "Table test"}
_SAMPLE_PARTY = 2
_PLATFORM_SAMPLES = ("reservation.created", "reservation.confirmed", "reservation.declined")


def event_body(
    delivery: DueDelivery, reservation: Reservation, venue: Venue, endpoint: Endpoint
) -> bytes:
    """Return a delivery's JSON body: the event with the reservation in its current state."""
    tables = [{"id": id_, "name": name} for id_, name in reservation.tables]
    data: dict[str, Any] = {
        "serviceReservationId": reservation.id,
        "accessCode": reservation.access_code or reservation.issued_code,
        "status": reservation.status,
        "date": reservation.date,
        "slot": reservation.slot,
        "table": tables[0],
        "tables": tables,
        "guests": reservation.guests,
        "customerFirstName": reservation.customer_first_name or "",
        "source": reservation.source,
        "createdByThisKey": endpoint.created(reservation),
    }
    if endpoint.may_read_reference(reservation) and reservation.external_ref is not None:
        data["externalRef"] = reservation.external_ref
    data["checkedInAt"] = optional_instant(reservation.checked_in_at)
    data["noShow"] = bool(reservation.no_show)
    data["createdAt"] = format_instant(reservation.created_at)
    data["updatedAt"] = format_instant(reservation.updated_at)
    return _body(delivery, data, venue)


def sample_body(reader: Reader, delivery: DueDelivery) -> bytes:
    """Return the JSON body of a test event: a complete sample for tonight at a table of the venue.

    Samples of `created`, `confirmed` and `declined` come from the platform, because a receiver may
    skip what its partner created. Each attempt sends the same sample, unless the venue changes.
    """
    venue, tonight = get_venue(reader), find_tonight(reader, delivery.occurred_at)
    table = next((table for table in list_tables(reader) if table.bookable), None)
    slot = next(iter(offered_slots(list_slots(reader), tonight)), None)
    instant, event_type = format_instant(delivery.occurred_at), delivery.event_type
    has_ended = event_type in {"reservation.cancelled", "reservation.declined"}
    own = event_type not in _PLATFORM_SAMPLES
    guests = _SAMPLE_PARTY
    if table is not None:
        guests = max(table.capacity_min, min(guests, table.capacity_max))
    place = {"id": table.id, "name": table.name} if table else _SAMPLE_TABLE
    data: dict[str, Any] = {
        "serviceReservationId": _SAMPLE_ID,
        "accessCode": "SVC-TEST",
        "status": event_type.partition(".")[2] if has_ended else "confirmed",
        "date": tonight.isoformat(),
        "slot": slot and slot.start,
        "table": place,
        "tables": [place],
        "guests": guests,
        "customerFirstName": "Test",
        "source": "partner" if own else "platform",
        "createdByThisKey": own,
    }
    if own:
        data["externalRef"] = "webhook-test"
    data["checkedInAt"] = instant if event_type == "reservation.checked_in" else None
    data |= {"noShow": False, "createdAt": instant, "updatedAt": instant}
    return _body(delivery, data, venue)


def _body(delivery: DueDelivery, data: dict[str, Any], venue: Venue) -> bytes:
    data["venue"] = {"id": venue.id, "name": venue.name}
    body = {
        "id": delivery.id,
        "type": delivery.event_type,
        "occurredAt": format_instant(delivery.occurred_at),
        "data": {"reservation": data},
    }
    return _encode(body).encode()


def sign(secrets: Sequence[str], t: int, body: bytes) -> str:
    """Return the `X-Service-Signature` header: `t=<seconds>,v1=<hex>`, with one `v1` per secret.

    The HMAC key is the whole string `whsec_…` as UTF-8. During the 24 hours after a roll, there are
    two secrets.
    """
    signed = b"%d." % t + body
    digests = [hmac.digest(secret.encode(), signed, "sha256").hex() for secret in secrets]
    return f"t={t}," + ",".join(f"v1={digest}" for digest in digests)
