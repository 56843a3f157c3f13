"""Answer a request: accept or decline what a guest asked for (interface, section 3)."""

from appliance.actions.announce import announce
from appliance.actions.queue_letter import write_to_guest
from appliance.errors import WrongState
from appliance.model.reservation import Reservation
from appliance.store.connection import Transaction
from appliance.store.reservations import add_history, get_reservation, update_reservation


def accept(tx: Transaction, reservation_id: str, *, actor: str) -> Reservation:
    """requested → confirmed, with `reservation.confirmed` and a letter; else WrongState."""
    return _answer(tx, reservation_id, "confirmed", "accepted", actor)


def decline(tx: Transaction, reservation_id: str, *, actor: str) -> Reservation:
    """requested → declined, with `reservation.declined` and a letter; the table is free again."""
    return _answer(tx, reservation_id, "declined", "declined", actor)


def _answer(
    tx: Transaction, reservation_id: str, status: str, what: str, actor: str
) -> Reservation:
    reservation = get_reservation(tx, reservation_id)
    if reservation.status != "requested":
        raise WrongState(state=reservation.status)
    update_reservation(tx, reservation_id, status=status)
    add_history(tx, reservation_id, what, actor)
    announce(tx, f"reservation.{status}", reservation_id)
    write_to_guest(tx, reservation_id, what)
    return get_reservation(tx, reservation_id)
