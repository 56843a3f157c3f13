"""Cancel: free the table and announce it (interface, section 3)."""

from dataclasses import dataclass

from appliance.actions.announce import announce
from appliance.actions.queue_letter import write_to_guest
from appliance.errors import NotFound, WrongState
from appliance.model.api_key import ApiKey
from appliance.model.reservation import Reservation
from appliance.store.connection import Transaction
from appliance.store.reservations import add_history, get_reservation, update_reservation


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A cancelled reservation, and whether it already was."""

    reservation: Reservation
    already: bool


def cancel_own(
    tx: Transaction, key: ApiKey, reservation_id: str, *, notify: bool = True
) -> Cancelled:
    """Cancel for a partner: NotFound unless its key line created it (interface, section 4)."""
    if get_reservation(tx, reservation_id).lineage != key.lineage:
        raise NotFound
    return cancel(tx, reservation_id, actor=f"key:{key.id}", notify=notify)


def cancel(tx: Transaction, reservation_id: str, *, actor: str, notify: bool = True) -> Cancelled:
    """Cancel in any state that holds the table; `checkedInAt` is kept.

    The guest gets an email, if one is due, unless `notify` is false. NotFound for an unknown
    id, WrongState when it was declined. A second time changes and announces nothing.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status == "cancelled":
        return Cancelled(reservation, already=True)
    if reservation.status == "declined":
        raise WrongState(state=reservation.status)
    update_reservation(tx, reservation_id, status="cancelled", cancelled_at=tx.now)
    add_history(tx, reservation_id, "cancelled", actor)
    announce(tx, "reservation.cancelled", reservation_id)
    if notify:
        write_to_guest(tx, reservation_id, "cancelled", by_guest=actor == "guest")
    return Cancelled(get_reservation(tx, reservation_id), already=False)
