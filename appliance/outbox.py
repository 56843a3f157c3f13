"""The transactional outbox: events with their deliveries, and notices published after commit."""

import json

from msgspec import Struct

from appliance.database.connection import Reader, Transaction

EVENT_TYPES = (
    "reservation.created",
    "reservation.confirmed",
    "reservation.cancelled",
    "reservation.declined",
    "reservation.checked_in",
    "webhook.test",
)
# Event types that the interface does not define. Only endpoints that name them receive them.
VENUE_UPDATED = "venue.updated"
EXTRA_TYPES = ("reservation.updated", VENUE_UPDATED, "reservation.checkin_reverted")


class DeliveriesQueued(Struct, frozen=True):
    """A notice, published after a commit, that these endpoints have new deliveries."""

    endpoint_ids: tuple[str, ...]


def announce(tx: Transaction, event_type: str, reservation_id: str | None) -> None:
    """Write an event in the same transaction as its cause (interface, section 6).

    `reservation_id` is None for `venue.updated`. After the commit, a `DeliveriesQueued` notice
    wakes the dispatcher, which sends the event.
    """
    endpoints = tx.keep("endpoint", _load_endpoints)
    subscribed = [id_ for id_, event_types in endpoints if event_type in event_types]
    queue_event(tx, event_type, reservation_id, subscribed)


def _load_endpoints(reader: Reader) -> list[tuple[str, frozenset[str]]]:
    """Return (id, event types) of each active endpoint."""
    rows = reader.rows("SELECT id, events FROM endpoint WHERE active = 1")
    return [(id_, frozenset(json.loads(events))) for id_, events in rows]


def queue_event(
    tx: Transaction, event_type: str, reservation_id: str | None, endpoint_ids: list[str]
) -> list[str]:
    """Write one event and its deliveries to the given endpoints. Returns the delivery ids."""
    event_seq = tx.insert(
        "event", {"type": event_type, "reservation_id": reservation_id, "occurred_at": tx.now}
    )
    delivery_ids = [tx.new_id() for _ in endpoint_ids]
    for delivery_id, endpoint_id in zip(delivery_ids, endpoint_ids, strict=True):
        row = {"id": delivery_id, "endpoint_id": endpoint_id, "event_seq": event_seq}
        tx.insert("delivery", {**row, "due_at": tx.now})
    tx.notices.append(DeliveriesQueued(tuple(endpoint_ids)))
    return delivery_ids


class ReservationChanged(Struct, frozen=True):
    """A reservation was created or changed. `moved` is True if it is for another evening now."""

    reservation_id: str
    moved: bool = False


class HoldsChanged(Struct, frozen=True):
    """A hold without a reservation was made or released."""


class ConflictChanged(Struct, frozen=True):
    """A door conflict was found or acknowledged."""

    conflict_id: str


class VenueChanged(Struct, frozen=True):
    """The venue's name or rules may have changed."""


class SigningKeyChanged(Struct, frozen=True):
    """Guest passes are signed with a new key.

    Terminals must receive the key before they can check the new passes.
    """


class TerminalGone(Struct, frozen=True):
    """A terminal was revoked."""

    terminal_id: str


class TerminalEdited(Struct, frozen=True):
    """A terminal's name or role has changed."""

    terminal_id: str


class SessionEnded(Struct, frozen=True):
    """A staff session has ended."""

    session_id: str
