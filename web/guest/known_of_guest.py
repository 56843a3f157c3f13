"""All that the box knows of a guest, for the guest (law 09-08)."""

from typing import Any

from appliance.clock import format_instant
from appliance.store.connection import Reader
from appliance.store.history import list_history, list_payments
from appliance.store.reservations import get_reservation


def known_of_guest(reader: Reader, reservation_id: str) -> dict[str, Any]:
    """One reservation with its history; instants in UTC, amounts in whole currency units."""
    found = get_reservation(reader, reservation_id)
    return {
        "reservation": {
            "id": found.id,
            "status": found.status,
            "source": found.source,
            "date": found.date,
            "slot": found.slot,
            "table": found.table_name,
            "guests": found.guests,
            "accessCode": found.access_code,
            "createdAt": format_instant(found.created_at),
            "updatedAt": format_instant(found.updated_at),
            "checkedInAt": format_instant(found.checked_in_at) if found.checked_in_at else None,
            "arrived": found.arrived,
        },
        "customer": {
            "name": found.customer_name,
            "email": found.customer_email,
            "phone": found.customer_phone,
            "notes": found.notes,
            "language": found.language,
        },
        "history": [
            {"at": format_instant(line.at), "what": line.what, "by": line.actor}
            for line in reversed(list_history(reader, reservation_id))
        ],
        "payments": [
            {"at": format_instant(paid.at), "amount": paid.amount, "method": paid.method}
            for paid in list_payments(reader, reservation_id)
        ],
    }
