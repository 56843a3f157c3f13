"""Cancel by the guest: as long as the house has time to seat somebody else."""

from appliance.actions.cancel import Cancelled, cancel
from appliance.errors import WrongState
from appliance.house_errors import TooLateToCancel
from appliance.model.guest_terms import cancel_deadline
from appliance.store.connection import Transaction
from appliance.store.reservations import get_reservation
from appliance.store.venue import get_venue, list_slots


def cancel_by_guest(tx: Transaction, reservation_id: str, cancel_hours: int) -> Cancelled:
    """Cancel, with `reservation.cancelled`; the letter is `cancel`'s.

    TooLateToCancel when the guests are in already, or expected within `cancel_hours`;
    WrongState when it was declined or is over. A second time changes nothing.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status == "cancelled":
        return Cancelled(reservation, already=True)
    if not reservation.holds or reservation.status == "completed":
        raise WrongState(state=reservation.status)
    venue = get_venue(tx)
    zone = tx.zones.zone(venue.time_zone)
    deadline = cancel_deadline(reservation, tuple(list_slots(tx)), venue, zone, cancel_hours)
    if reservation.checked_in_at is not None or tx.now >= deadline:
        raise TooLateToCancel
    return cancel(tx, reservation_id, actor="guest")
