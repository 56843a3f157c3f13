"""Export a guest: everything that is held about a reservation, for who it is about (law 09-08)."""

from appliance.clock import format_instant, optional_instant
from appliance.store.connection import Reader
from appliance.store.held import (
    Entry,
    list_deliveries_held,
    list_letters_held,
    list_scans_held,
)
from appliance.store.history import list_history, list_payments
from appliance.store.reservations import get_reservation
from appliance.store.venue import get_venue

_CLAIMS = "SELECT count(*) FROM claim WHERE reservation_id = :id"
_ASKED = "SELECT at FROM erasure_request WHERE reservation_id = :id"


def export_guests(reader: Reader, reservation_ids: list[str]) -> Entry:
    """Those reservations, ready for JSON. NotFound when one is unknown."""
    return {
        "venue": get_venue(reader).name,
        "exportedAt": format_instant(reader.now),
        "reservations": [_reservation(reader, id_) for id_ in reservation_ids],
    }


def _reservation(reader: Reader, reservation_id: str) -> Entry:
    found = get_reservation(reader, reservation_id)
    return {
        "id": found.id, "status": found.status, "source": found.source,
        "date": found.date, "slot": found.slot, "table": found.table_name,
        "guests": found.guests, "arrived": found.arrived,
        "customer": {"name": found.customer_name, "email": found.customer_email,
                     "phone": found.customer_phone, "language": found.language},
        "notes": found.notes, "vip": bool(found.vip),
        "accessCode": found.access_code, "externalRef": found.external_ref,
        "createdAt": format_instant(found.created_at),
        "updatedAt": format_instant(found.updated_at),
        "cancelledAt": optional_instant(found.cancelled_at),
        "checkedInAt": optional_instant(found.checked_in_at),
        "lateSince": optional_instant(found.late_at),
        "linkExpiresAt": format_instant(found.link_expires_at),
        "history": [
            {"at": format_instant(entry.at), "what": entry.what, "by": entry.actor.split(":")[0],
             "detail": entry.detail}
            for entry in list_history(reader, found.id)
        ],
        "payments": [
            {"at": format_instant(payment.at), "amount": payment.amount, "method": payment.method,
             "voidedAt": optional_instant(payment.voided_at)}
            for payment in list_payments(reader, found.id)
        ],
        "letters": list_letters_held(reader, found.id),
        "scans": list_scans_held(reader, found.id),
        "sentTo": list_deliveries_held(reader, found.id),
        "keptInBrowsers": reader.value(_CLAIMS, {"id": found.id}),
        "erasureAskedAt": optional_instant(reader.value(_ASKED, {"id": found.id})),
    }  # fmt: skip
