"""Ask for erasure: a guest wants the box to forget them (law 09-08)."""

from appliance.actions.erase_guest import erase_guest
from appliance.model.guest_terms import evening_is_over
from appliance.store.connection import Transaction
from appliance.store.reservations import add_history, get_reservation
from appliance.store.venue import get_venue


def ask_erasure(tx: Transaction, reservation_id: str) -> bool:
    """Erase a guest whom nobody expects any more, at once; whether that was done.

    While the evening is still to come the house needs the name: then staff are asked, and
    asked twice is asked once.
    """
    reservation = get_reservation(tx, reservation_id)
    venue = get_venue(tx)
    zone = tx.zones.zone(venue.time_zone)
    sql = "INSERT OR IGNORE INTO erasure_request (reservation_id, at) VALUES (:id, :at)"
    is_first = tx.execute(sql, {"id": reservation_id, "at": tx.now}) > 0
    if not reservation.holds or evening_is_over(reservation, venue, zone, tx.now):
        erase_guest(tx, reservation_id, actor="guest")
        return True
    if is_first:
        add_history(tx, reservation_id, "erasure_asked", "guest")
    return False
