"""Announce a party's arrival once, and its taking back to those who asked to hear of it."""

from appliance.actions.announce import announce, queue_event
from appliance.store.connection import Transaction
from appliance.store.endpoints import list_active_endpoints
from appliance.store.scans import has_undo

ARRIVED = "reservation.checked_in"
REVERTED = "reservation.checkin_reverted"  # not one of the six that endpoints get by default


def announce_arrival(tx: Transaction, reservation_id: str) -> None:
    """Announce that the first of the party came in: once for each reservation (door.md).

    After a check-in was taken back, the second arrival concerns only the endpoints that were
    told so; the others still believe the first.
    """
    if not has_undo(tx, reservation_id):
        announce(tx, ARRIVED, reservation_id)
        return
    told = [e.id for e in list_active_endpoints(tx) if {ARRIVED, REVERTED} <= set(e.events)]
    if told:
        queue_event(tx, ARRIVED, reservation_id, told)


def announce_reversal(tx: Transaction, reservation_id: str) -> None:
    """Announce that nobody of the party is in any more, to endpoints that subscribed to it."""
    announce(tx, REVERTED, reservation_id)
