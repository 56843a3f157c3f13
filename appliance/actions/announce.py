"""Announce: write an event, and a delivery for each endpoint that subscribed to it."""

import json
from dataclasses import dataclass

from appliance.store.connection import Transaction

EVENT_TYPES = (
    "reservation.created",
    "reservation.confirmed",
    "reservation.cancelled",
    "reservation.declined",
    "reservation.checked_in",
    "webhook.test",
)


@dataclass(frozen=True, slots=True)
class Announced:
    """A notice after commit: something happened, and these endpoints have deliveries due."""

    event_type: str
    reservation_id: str | None
    endpoint_ids: tuple[str, ...]


def announce(tx: Transaction, event_type: str, reservation_id: str) -> None:
    """Write the event in the transaction of its cause (contract section 6).

    Sends nothing: the dispatcher is told after the commit, by an `Announced` notice.
    """
    rows = tx.rows("SELECT id, events FROM endpoint WHERE active = 1")
    subscribed = [id_ for id_, events in rows if event_type in json.loads(events)]
    queue_event(tx, event_type, reservation_id, subscribed)


def queue_event(
    tx: Transaction, event_type: str, reservation_id: str | None, endpoint_ids: list[str]
) -> list[str]:
    """Write one event and its deliveries to the given endpoints; the delivery ids."""
    event_seq = tx.insert(
        "event", {"type": event_type, "reservation_id": reservation_id, "occurred_at": tx.now}
    )
    delivery_ids = [tx.new_id() for _ in endpoint_ids]
    for delivery_id, endpoint_id in zip(delivery_ids, endpoint_ids, strict=True):
        tx.insert(
            "delivery",
            {"id": delivery_id, "endpoint_id": endpoint_id, "event_seq": event_seq,
             "due_at": tx.now},
        )  # fmt: skip
    tx.notices.append(Announced(event_type, reservation_id, tuple(endpoint_ids)))
    return delivery_ids
