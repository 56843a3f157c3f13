"""What a change leaves: events with their deliveries, and notices for the live feed."""

import json
from dataclasses import dataclass

from appliance.database.connection import Reader, Transaction

EVENT_TYPES = (
    "reservation.created",
    "reservation.confirmed",
    "reservation.cancelled",
    "reservation.declined",
    "reservation.checked_in",
    "webhook.test",
)
# Beyond the interface's six: sent only to endpoints for which the venue ticked it in its portal.
EXTRA_TYPES = ("reservation.checkin_reverted",)


@dataclass(frozen=True, slots=True)
class Announced:
    """A notice after commit: something happened, and these endpoints have deliveries due."""

    event_type: str
    reservation_id: str | None
    endpoint_ids: tuple[str, ...]


def announce(tx: Transaction, event_type: str, reservation_id: str) -> None:
    """Write the event in the transaction of its cause (interface, section 6).

    Sends nothing: the dispatcher is told after the commit, by an `Announced` notice.
    """
    endpoints = _subscriptions(tx)
    subscribed = [id_ for id_, events in endpoints if event_type in events]
    queue_event(tx, event_type, reservation_id, subscribed)


def _subscriptions(reader: Reader) -> list[tuple[str, frozenset[str]]]:
    rows = reader.rows("SELECT id, events FROM endpoint WHERE active = 1")
    return [(id_, frozenset(json.loads(events))) for id_, events in rows]


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


@dataclass(frozen=True, slots=True)
class ReservationChanged:
    """A reservation was made or changed, whatever did it. `moved`: to another evening."""

    reservation_id: str
    moved: bool = False


@dataclass(frozen=True, slots=True)
class ConflictChanged:
    """A conflict of the door was found, or somebody has acknowledged it."""

    conflict_id: str


@dataclass(frozen=True, slots=True)
class VenueChanged:
    """The venue may have another name, or other rules."""


@dataclass(frozen=True, slots=True)
class SigningKeyChanged:
    """Another key signs guest passes from now on: doors have to know it before it is shown."""


@dataclass(frozen=True, slots=True)
class TerminalGone:
    """A terminal's access was withdrawn."""

    terminal_id: str


@dataclass(frozen=True, slots=True)
class TerminalEdited:
    """A terminal has another name, or may do more or less than before."""

    terminal_id: str


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """Somebody of the house is signed out of a browser, whoever ended that session."""

    session_id: str


@dataclass(frozen=True, slots=True)
class ClockConfirmed:
    """Somebody says that the machine's clock is right."""
