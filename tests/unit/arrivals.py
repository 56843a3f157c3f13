"""Builders of reservations for door tests, in the state that a test needs."""

from typing import Any

from appliance.core.phone_numbers import find_numbers
from appliance.database.connection import Transaction
from appliance.reservations.model import Reservation
from appliance.reservations.rows import get_reservation, insert_reservation
from tests.builders import TONIGHT, table_id

_SALMA: dict[str, Any] = {
    "status": "confirmed",
    "source": "manual",
    "date": TONIGHT,
    "slot": None,
    "guests": 2,
    "customer_name": "Salma Idrissi",
    "customer_email": "salma@example.com",
    "customer_phone": "+212 600 123 457",
    "notes": "Près de la fenêtre",
    "access_code": None,
}


def a_guest(**changes: Any) -> Reservation:
    """Return a confirmed reservation for two at Terrasse 1 tonight, without storing it."""
    members: dict[str, Any] = dict.fromkeys(Reservation.__slots__)
    members |= _SALMA | {
        "seq": 1,
        "id": "01980000-0000-7000-8000-000000000001",
        "table_id": table_id("T1"),
        "table_name": "Terrasse 1",
        "table_number": "T1",
        "starts": 0,
        "ends": 2880,
        "pass_id": bytes(8),
        "generation": 0,
        "arrived": 0,
        "people_out": 0,
        "link_expires_at": 0,
        "created_at": 0,
        "updated_at": 0,
        "version": 1,
    }
    members |= changes
    members["customer_numbers"] = " ".join(find_numbers(members["customer_phone"], "MA")) or None
    return Reservation(**members)


def add_reservation(tx: Transaction, **changes: Any) -> Reservation:
    """Insert such a reservation. `table` is the number of a table.

    Reservations of one table and evening must not overlap. A slot is an hour long.
    """
    number = changes.pop("table", "T1")
    slot = changes.get("slot")
    starts = 0 if slot is None else int(slot[:2]) * 60 + int(slot[3:])
    if slot is not None and slot < "06:00":  # after midnight, as the venue's evening ends at 06:00
        starts += 24 * 60
    values = _SALMA | {
        "id": tx.new_id(),
        "table_id": table_id(number),
        "starts": starts,
        "ends": 2880 if slot is None else starts + 60,
        "pass_id": tx.tokens.random_bytes(8),
        "link_expires_at": tx.now + 86_400_000,
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    values |= changes
    insert_reservation(tx, values)
    return get_reservation(tx, values["id"])
