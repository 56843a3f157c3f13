"""Builders: a furnished venue, keys, bookings. They supply the values that a test does not name."""

import json
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from appliance.api_keys import SCOPES, ApiKey
from appliance.clock import newest_zone_database
from appliance.core.tokens import Keyring, Tokens, hash_token
from appliance.database.connection import Transaction
from appliance.database.integrity import session
from appliance.door.guest_pass import add_signing_key
from appliance.environment import Environment
from appliance.reservations.request import Booking
from tests.clocks import StoppedClock

VENUE_ID = "0b5e2f5e-6c0a-4d55-8a1e-3a4f5b6c7d8e"
TONIGHT = "2026-11-21"  # a Saturday; the `clock` fixture shows 19:00 of this day
_SPACE = UUID("6b1c9f2e-0000-4000-8000-000000000000")


def table_id(number: str) -> str:
    """Return the id of the furnished table with this number (T1 to T6)."""
    return str(uuid5(_SPACE, number))


def furnish(path: Path, environment: str, master_key: bytes, clock: StoppedClock) -> None:
    """Create Riad Atlas: T1 to T5 for 2 to 4 guests, T6 not bookable, three slots.

    The slots are 19:30, 22:00 (until 01:00 the next morning), and 12:00 on Sundays only.
    """
    tokens = Tokens()
    with session(path, clock, tokens, newest_zone_database()) as tx:
        tx.insert(
            "venue",
            {"id": VENUE_ID, "name": "Riad Atlas", "slug": "riad-atlas", "status": "active",
             "reservation_mode": "free", "auto_confirm": 1, "request_expiry_hours": 24,
             "currency": "MAD", "time_zone": "Africa/Casablanca", "evening_ends_at": "06:00"},
        )  # fmt: skip
        for position, number in enumerate(("T1", "T2", "T3", "T4", "T5", "T6")):
            tx.insert(
                "venue_table",
                {"id": table_id(number), "position": position, "number": number,
                 "name": f"Terrasse {number[1:]}", "capacity_min": 2, "capacity_max": 4,
                 "minimum_spend": 500, "type": "standard", "bookable": int(number != "T6")},
            )  # fmt: skip
        for position, (name, start, end, days) in enumerate(
            (
                ("Dîner", "19:30", "22:00", [0, 1, 2, 3, 4, 5, 6]),
                ("Soirée", "22:00", "01:00", [0, 1, 2, 3, 4, 5, 6]),
                ("Brunch", "12:00", "15:00", [0]),
            )
        ):
            tx.insert(
                "slot",
                {"id": tx.new_id(), "position": position, "name": name, "start": start,
                 "end": end, "days_of_week": json.dumps(days)},
            )  # fmt: skip
        add_signing_key(tx, Keyring(master_key, environment))


async def a_key(
    environment: Environment,
    scopes: tuple[str, ...] = SCOPES,
    *,
    successor_of: ApiKey | None = None,
) -> str:
    """Create a key of the environment and return its text."""
    key = environment.database.tokens.new_api_key(environment.name)
    await environment.database.write(_add_key, key, scopes, successor_of)
    return key


def _add_key(
    tx: Transaction, key: str, scopes: tuple[str, ...], successor_of: ApiKey | None
) -> None:
    key_id = tx.new_id()
    lineage = successor_of.lineage if successor_of else key_id
    tx.insert(
        "api_key",
        {"id": key_id, "lineage": lineage, "name": "Partner", "hash": hash_token(key),
         "prefix": key[:13], "last_four": key[-4:], "scopes": " ".join(scopes),
         "created_at": tx.now},
    )  # fmt: skip


def a_body(**changes: Any) -> dict[str, Any]:
    """Return a valid `POST /v1/reservations` body for T1 tonight at 19:30.

    A member that is None is omitted.
    """
    body = {
        "tableId": table_id("T1"),
        "date": TONIGHT,
        "slot": "19:30",
        "guests": 2,
        "customer": {"name": "Salma Idrissi", "phone": "+212 600 000 001"},
        "idempotencyKey": "booking-1",
        **changes,
    }
    return {name: value for name, value in body.items() if value is not None}


def a_booking(**changes: Any) -> Booking:
    """Return a parsed booking for T1 tonight at 19:30."""
    members: dict[str, Any] = {
        "table_id": table_id("T1"),
        "date": date.fromisoformat(TONIGHT),
        "slot": "19:30",
        "guests": 2,
        "customer_name": "Salma Idrissi",
        "customer_email": None,
        "customer_phone": "+212 600 000 001",
        **changes,
    }
    return Booking(**members)
