"""How things look on the wire: JSON answers of the partner interface (interface, section 2)."""

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from appliance.actions.cancel import Cancelled
from appliance.clock import format_instant
from appliance.environment import Environment
from appliance.errors import Refusal
from appliance.model.availability import TableAvailability
from appliance.model.reservation import Issued, Reservation
from appliance.model.venue import Slot, Table, Venue

# For answers that are no page; pages bring their own, wider policy.
COMMON_HEADERS: Mapping[str, str] = {
    "Server": "venuebox",  # not which library in which version
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_HEADERS = CIMultiDict({"Content-Type": "application/json", **COMMON_HEADERS})
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def answer(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """A JSON answer."""
    response = web.Response(body=_encode(data).encode(), status=status, headers=_HEADERS)
    if headers:
        response.headers.update(headers)
    return response


def refuse(refusal: Refusal) -> web.Response:
    """A refusal (interface, section 7)."""
    return answer(refusal.body(), refusal.status, refusal.headers)


def venue_answer(venue: Venue, tables: list[Table], slots: list[Slot]) -> dict[str, Any]:
    """The Venue object (interface, section 2.1)."""
    return {
        "venue": {
            "id": venue.id,
            "name": venue.name,
            "slug": venue.slug,
            "status": venue.status,
        },
        "reservationMode": venue.reservation_mode,
        "autoConfirm": venue.auto_confirm,
        "requestExpiryHours": venue.request_expiry_hours,
        "tables": [_table(table) for table in tables],
        "slots": [_slot(slot) for slot in slots],
        "policies": venue.policies,
        "currency": venue.currency,
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "id": table.id,
        "name": table.name,
        "number": table.number,
        "capacityMin": table.capacity_min,
        "capacityMax": table.capacity_max,
        "minimumSpend": table.minimum_spend,
        "type": table.type,
        "bookable": table.bookable,
    }


def _slot(slot: Slot) -> dict[str, Any]:
    return {
        "id": slot.id,
        "name": slot.name,
        "start": slot.start,
        "end": slot.end,
        "daysOfWeek": list(slot.days_of_week),
    }


def availability_answer(
    day: str, slot: str | None, tables: list[TableAvailability]
) -> dict[str, Any]:
    """The Availability object (interface, section 2.4); date and slot echo the query."""
    return {
        "date": day,
        "slot": slot,
        "tables": [
            {
                "id": entry.table.id,
                "name": entry.table.name,
                "available": entry.available,
                "blockedBy": entry.blocked_by,
            }
            for entry in tables
        ],
    }


def reservation_answer(
    reservation: Reservation, *, lineage: str, shows_contacts: bool
) -> dict[str, Any]:
    """An item of the list (interface, section 2.5) as the key of `lineage` may see it."""
    item: dict[str, Any] = {
        "id": reservation.id,
        "accessCode": reservation.access_code,
        "status": reservation.status,
        "date": reservation.date,
        "slot": reservation.slot,
        "table": {"id": reservation.table_id, "name": reservation.table_name},
        "guests": reservation.guests,
        "customerFirstName": reservation.customer_first_name,
        "source": reservation.source,
        "checkedInAt": _optional_instant(reservation.checked_in_at),
        "createdAt": format_instant(reservation.created_at),
    }
    if reservation.lineage == lineage and reservation.external_ref is not None:
        item["externalRef"] = reservation.external_ref
    if shows_contacts:
        item["customerEmail"] = reservation.customer_email
        item["customerPhone"] = reservation.customer_phone
    return item


def creation_answer(issued: Issued, environment: Environment) -> dict[str, Any]:
    """The creation result (interface, section 2.7), the same for each replay."""
    keyring, links = environment.keyring, environment.links
    return {
        "serviceReservationId": issued.reservation_id,
        "accessCode": issued.access_code,
        "status": "confirmed",
        "guestAccessUrl": links.access(keyring.access_token(issued.reservation_id)),
        "claimUrl": links.claim(keyring.claim_token(issued.reservation_id)),
        "accessLinkExpiresAt": format_instant(issued.link_expires_at),
        "notifications": {"email": issued.email_outcome, "sms": "skipped"},
    }


def cancellation_answer(cancelled: Cancelled) -> dict[str, Any]:
    """The answer to `DELETE /v1/reservations/{id}` (interface, section 4)."""
    reservation = cancelled.reservation
    body: dict[str, Any] = {
        "serviceReservationId": reservation.id,
        "status": reservation.status,
        "cancelledAt": _optional_instant(reservation.cancelled_at),
    }
    if cancelled.already:
        body["alreadyCancelled"] = True
    return body


def _optional_instant(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else format_instant(milliseconds)
