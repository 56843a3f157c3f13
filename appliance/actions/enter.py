"""Enter: reservations that do not come from a partner (decisions.md, States)."""

from appliance.actions.grant import grant
from appliance.model.booking import Booking
from appliance.model.reservation import Reservation
from appliance.store.connection import Transaction
from appliance.store.reservations import get_reservation
from appliance.store.venue import get_venue

_HOUR = 3_600_000


def enter_for_guest(tx: Transaction, booking: Booking) -> Reservation:
    """A guest's booking on the venue's own page (`platform`).

    free with autoConfirm: confirmed. free without: requested, until `requestExpiryHours`
    have passed. prepaid: pending until staff record the payment.
    """
    venue = get_venue(tx)
    expires_at = None
    if venue.reservation_mode == "prepaid":
        status = "pending"
    elif venue.auto_confirm:
        status = "confirmed"
    else:
        status, expires_at = "requested", tx.now + venue.request_expiry_hours * _HOUR
    issued = grant(
        tx, booking, source="platform", status=status, actor="guest", expires_at=expires_at
    )
    return get_reservation(tx, issued.reservation_id)


def enter_by_staff(tx: Transaction, booking: Booking, *, actor: str) -> Reservation:
    """A reservation that staff wrote down (`manual`): confirmed."""
    issued = grant(tx, booking, source="manual", status="confirmed", actor=actor)
    return get_reservation(tx, issued.reservation_id)
