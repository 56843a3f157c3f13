"""The body of a webhook and its signature (interface, sections 2.9 and 6.1)."""

import hmac
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from appliance.clock import format_instant, optional_instant
from appliance.database.connection import Reader
from appliance.outbox import VENUE_UPDATED
from appliance.reservations.email_queue import find_email_outcomes
from appliance.reservations.model import Reservation, find_instants
from appliance.venue.model import (
    find_tonight,
    find_zone,
    get_venue,
    interval,
    list_slots,
    list_tables,
    minute_of,
    offered_slots,
)
from appliance.webhooks.deliveries import DueDelivery
from appliance.webhooks.endpoints import Endpoint

_escape = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode

_SAMPLE_ID = "00000000-0000-4000-8000-000000000000"
_SAMPLE_TABLE = {"id": "00000000-0000-4000-8000-000000000001", "name": "Table test"}
_SAMPLE_PARTY = 2
_PLATFORM_SAMPLES = ("reservation.created", "reservation.confirmed", "reservation.declined")


def event_body(
    reader: Reader, delivery: DueDelivery, reservation: Reservation, endpoint: Endpoint
) -> bytes:
    """Return a delivery's JSON body: the event with the reservation in its current state."""
    (data,) = describe_reservations(
        reader, [reservation], endpoint.lineage, own_refs=bool(endpoint.own_refs)
    )
    return _body(delivery, {"reservation": data})


def describe_reservations(
    reader: Reader, reservations: Sequence[Reservation], lineage: str | None, *, own_refs: bool
) -> list[dict[str, Any]]:
    """Return `data.reservation` for a receiver with keys of `lineage` (interface, section 2.9).

    If `own_refs` is True, `externalRef` is sent only for reservations of that lineage.
    """
    its = {each.id: each for each in reservations if lineage and each.lineage == lineage}
    emails = find_email_outcomes(reader, its.values()) if its else {}
    instants, venue = find_instants(reader, reservations), get_venue(reader)

    def describe(each: Reservation, starts_at: int, ends_at: int) -> dict[str, Any]:
        own = each.id in its
        tables = [{"id": id_, "name": name} for id_, name in each.tables]
        data: dict[str, Any] = {
            "serviceReservationId": each.id,
            "accessCode": each.access_code or each.issued_code,
            "status": each.status,
            "date": each.date,
            "slot": each.slot,
            "table": tables[0],
            "tables": tables,
            "guests": each.guests,
            "customerFirstName": each.customer_first_name or "",
            "source": each.source,
            "createdByThisKey": own,
        }
        if each.cancelled_by is not None:
            data["cancelledBy"] = each.cancelled_by
        if own:
            email = emails.get(each.id) or each.email_outcome or "skipped"
            data["notifications"] = {"email": email, "sms": "skipped"}
        if each.external_ref is not None and (own or not own_refs):
            data["externalRef"] = each.external_ref
        return data | {
            "checkedInAt": optional_instant(each.checked_in_at),
            "lateAt": optional_instant(each.late_at),
            "noShow": bool(each.no_show),
            "startsAt": format_instant(starts_at),
            "endsAt": format_instant(ends_at),
            "createdAt": format_instant(each.created_at),
            "updatedAt": format_instant(each.updated_at),
            "venue": {"id": venue.id, "name": venue.name},
        }

    return [describe(each, *when) for each, when in zip(reservations, instants, strict=True)]


def sample_body(reader: Reader, delivery: DueDelivery) -> bytes:
    """Return the JSON body of a test event: a complete sample for tonight at a table of the venue.

    Samples of `created`, `confirmed` and `declined` come from the platform, because a receiver may
    skip what its partner created. Each attempt sends the same sample, unless the venue changes.
    """
    if delivery.event_type == VENUE_UPDATED:
        return _body(delivery, venue_data(reader))
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
    if event_type == "reservation.cancelled":
        data["cancelledBy"] = "partner"
    if own:
        data["notifications"] = {"email": "skipped", "sms": "skipped"}
        data["externalRef"] = "webhook-test"
    hours = interval(slot, venue.evening_ends_at)
    starts_at, ends_at = (minute_of(tonight, at, find_zone(reader)) for at in hours)
    data |= {
        "checkedInAt": instant if event_type == "reservation.checked_in" else None,
        "lateAt": None,
        "noShow": False,
        "startsAt": format_instant(starts_at),
        "endsAt": format_instant(ends_at),
        "createdAt": instant,
        "updatedAt": instant,
        "venue": {"id": venue.id, "name": venue.name},
    }
    return _body(delivery, {"reservation": data})


def venue_data(reader: Reader) -> dict[str, Any]:
    """Return the data of the event `venue.updated`, which a sample does not differ from."""
    venue = get_venue(reader)
    identity = {"id": venue.id, "name": venue.name, "slug": venue.slug, "status": venue.status}
    return {"venue": identity}


def _body(delivery: DueDelivery, data: dict[str, Any]) -> bytes:
    body = {
        "id": delivery.id,
        "type": delivery.event_type,
        "occurredAt": format_instant(delivery.occurred_at),
        "data": data,
    }
    encoded = msgspec.json.encode(body)
    # Escape non-ASCII characters. The body's bytes are then the same in every common character set,
    # so receivers read names correctly and compute the right signature.
    return encoded if encoded.isascii() else _escape(body).encode()


def sign(secrets: Sequence[str], t: int, body: bytes) -> str:
    """Return the `X-Service-Signature` header: `t=<seconds>,v1=<hex>`, with one `v1` per secret.

    The HMAC key is the whole string `whsec_…` as UTF-8. During the 24 hours after a roll, there are
    two secrets.
    """
    signed = b"%d." % t + body
    digests = [hmac.digest(secret.encode(), signed, "sha256").hex() for secret in secrets]
    return f"t={t}," + ",".join(f"v1={digest}" for digest in digests)
