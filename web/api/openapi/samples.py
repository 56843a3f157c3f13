"""One evening at a made-up venue: the values that every example of the description shows."""

from dataclasses import dataclass
from typing import Any

VENUE_ID = "0198f0a2-5c1e-7b3d-9a40-2f6c1d8e7b01"
TABLE_ID = "0198f0a2-5c1e-7b3d-9a40-2f6c1d8e7b11"
OTHER_TABLE_ID = "0198f0a2-5c1e-7b3d-9a40-2f6c1d8e7b12"
SLOT_ID = "0198f0a2-5c1e-7b3d-9a40-2f6c1d8e7b21"
RESERVATION_ID = "019aa0c3-4d5e-7f60-8a1b-3c2d4e5f6071"
OTHER_RESERVATION_ID = "019aa0b9-1122-7334-8455-667788990011"
ENDPOINT_ID = "019aa0d0-0a1b-7c2d-8e3f-405162738495"
DELIVERY_ID = "019aa0d1-9f8e-7d6c-8b5a-493827160504"
WEBHOOK_URL = "https://pos.example.com/hooks/venuebox"
CREATED_AT = "2026-11-21T18:02:11.482Z"
CHECKED_IN_AT = "2026-11-21T19:41:07.090Z"

TABLE: dict[str, Any] = {
    "id": TABLE_ID,
    "name": "Terrasse 1",
    "number": "T1",
    "capacityMin": 2,
    "capacityMax": 4,
    "minimumSpend": 500,
    "type": "standard",
    "bookable": True,
}
SLOT: dict[str, Any] = {
    "id": SLOT_ID,
    "name": "Dîner",
    "start": "19:30",
    "end": "22:00",
    "daysOfWeek": [0, 1, 2, 3, 4, 5, 6],
}
VENUE: dict[str, Any] = {
    "venue": {"id": VENUE_ID, "name": "Riad Atlas", "slug": "riad-atlas", "status": "active"},
    "reservationMode": "free",
    "autoConfirm": True,
    "requestExpiryHours": 24,
    "tables": [TABLE],
    "slots": [SLOT],
    "policies": {"cancellation": "Until 18:00 on the day.", "lateArrivalMinutes": 20},
    "currency": "MAD",
}
AVAILABILITY: dict[str, Any] = {
    "date": "2026-11-21",
    "slot": "19:30",
    "tables": [
        {"id": TABLE_ID, "name": "Terrasse 1", "available": False, "blockedBy": "partner"},
        {"id": OTHER_TABLE_ID, "name": "Terrasse 2", "available": True, "blockedBy": None},
    ],
}
OWN_RESERVATION: dict[str, Any] = {
    "id": RESERVATION_ID,
    "accessCode": "SVC-7KQ4",
    "status": "confirmed",
    "date": "2026-11-21",
    "slot": "19:30",
    "table": {"id": TABLE_ID, "name": "Terrasse 1"},
    "guests": 4,
    "customerFirstName": "Salma",
    "source": "partner",
    "checkedInAt": None,
    "createdAt": CREATED_AT,
    "externalRef": "POS-20481",
    "customerEmail": "salma.bennani@example.com",
    "customerPhone": "+212 612 345 678",
}
PREPAID_RESERVATION: dict[str, Any] = {
    "id": OTHER_RESERVATION_ID,
    "accessCode": "SVC-M2X9",
    "status": "pending",
    "date": "2026-11-21",
    "slot": None,
    "table": {"id": OTHER_TABLE_ID, "name": "Terrasse 2"},
    "guests": 2,
    "customerFirstName": "Youssef",
    "source": "platform",
    "checkedInAt": None,
    "createdAt": "2026-11-20T09:15:40.120Z",
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What the examples of a booking ask for. A box puts in what it would grant."""

    table_id: str = TABLE_ID
    date: str = "2026-11-21"
    slot: str = "19:30"
    guests: int = 4
    reference: str = "POS-20481"


def booking(wish: Wish) -> dict[str, Any]:
    """A body of `POST /v1/reservations` for a slot."""
    return {
        "tableId": wish.table_id,
        "date": wish.date,
        "slot": wish.slot,
        "guests": wish.guests,
        "customer": {
            "name": "Salma Bennani",
            "email": "salma.bennani@example.com",
            "phone": "+212 612 345 678",
        },
        "notes": "Birthday, near the window if possible.",
        "externalRef": wish.reference,
        "idempotencyKey": f"{wish.reference}-1",
        "notifyCustomer": True,
    }


def whole_evening_booking(wish: Wish) -> dict[str, Any]:
    """The same for the whole evening."""
    return {
        "tableId": wish.table_id,
        "date": wish.date,
        "guests": wish.guests,
        "customer": {"name": "Salma Bennani", "phone": "+212 612 345 678"},
        "idempotencyKey": f"{wish.reference}-evening-1",
        "notifyCustomer": False,
    }


CREATION: dict[str, Any] = {
    "serviceReservationId": RESERVATION_ID,
    "accessCode": "SVC-7KQ4",
    "status": "confirmed",
    "guestAccessUrl": "https://box.example/access/AZqgw01ef2CKGzwtTl9gcQ7Zr0m1uYx8pQnV2bL5kT3s",
    "claimUrl": "https://box.example/claim-guest/AZqgw01ef2CKGzwtTl9gcR3hWc9eJ6oDfS4yU1iNaB7v",
    "accessLinkExpiresAt": "2026-11-22T12:00:00.000Z",
    "notifications": {"email": "sent", "sms": "skipped"},
}
CANCELLATION: dict[str, Any] = {
    "serviceReservationId": RESERVATION_ID,
    "status": "cancelled",
    "cancelledAt": "2026-11-21T18:30:00.000Z",
}
ENDPOINT: dict[str, Any] = {
    "id": ENDPOINT_ID,
    "url": WEBHOOK_URL,
    "events": ["reservation.created", "reservation.cancelled"],
    "active": True,
    "createdAt": "2026-11-01T10:00:00.000Z",
}
LISTED_ENDPOINT = {**ENDPOINT, "createdByThisKey": True}
SECRET = "whsec_3q2-7wEXAMPLEONLYxT0zJrYbVdK9mHnQ5uLcWsPf8A"  # noqa: S105 - made up, to be shown
