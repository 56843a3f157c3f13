"""Announce that a party came in, and its taking back to those who asked to hear of it."""

from appliance.actions.announce import announce
from appliance.store.connection import Transaction

ARRIVED = "reservation.checked_in"
REVERTED = "reservation.checkin_reverted"  # not one of the six that endpoints get by default


def announce_arrival(tx: Transaction, reservation_id: str) -> None:
    """Announce the first arrival of a party, when `checkedInAt` is set (interface, section 3).

    After a check-in was taken back that is a second event, which says when they came at last.
    """
    announce(tx, ARRIVED, reservation_id)


def announce_reversal(tx: Transaction, reservation_id: str) -> None:
    """Announce that nobody of the party is in any more, to endpoints that subscribed to it."""
    announce(tx, REVERTED, reservation_id)
