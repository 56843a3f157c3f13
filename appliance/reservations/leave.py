"""Parties that have left, and parties that did not come: both free their tables (section 3).

A party that has left holds nothing from then on, so that its table can be booked for the rest of
the slot. Its reservation keeps the slot and the interval that were asked for.
"""

from appliance.core.errors import WrongState
from appliance.database.connection import Transaction
from appliance.outbox import announce
from appliance.reservations.holds import free_tables, hold_tables
from appliance.reservations.model import (
    OPEN_STATUSES,
    Reservation,
    evening_is_over,
    has_started,
    is_awaited,
)
from appliance.reservations.rows import (
    add_history,
    get_reservation,
    list_history,
    update_reservation,
)


def leave(tx: Transaction, reservation_id: str, *, actor: str) -> Reservation:
    """Record that the party has left: complete the reservation, and free its tables now.

    `checkedInAt` does not change, and the guest gets no email. Raises NotFound if the id is
    unknown, and WrongState unless the reservation is open and somebody of the party has come in.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status not in OPEN_STATUSES or not reservation.arrived:
        raise WrongState(state=reservation.status)
    update_reservation(tx, reservation_id, status="completed", left_at=tx.now)
    free_tables(tx, reservation)
    add_history(tx, reservation_id, "left", actor, status=reservation.status)
    announce(tx, "reservation.updated", reservation_id)
    return get_reservation(tx, reservation_id)


def mark_no_show(tx: Transaction, reservation_id: str, *, actor: str) -> Reservation:
    """Record that nobody came: cancel the reservation, and free its tables, without an email.

    The webhook endpoints are notified as of any cancellation. Raises NotFound if the id is unknown,
    and WrongState unless the reservation is confirmed, pending or partial, has started, and nobody
    of the party has come in.
    """
    reservation = get_reservation(tx, reservation_id)
    if not is_awaited(reservation) or not has_started(tx, reservation):
        raise WrongState(state=reservation.status)
    update_reservation(
        tx, reservation_id, status="cancelled", cancelled_at=tx.now, cancelled_by="venue",
        no_show=1,
    )  # fmt: skip
    free_tables(tx, reservation)
    add_history(tx, reservation_id, "no_show", actor, status=reservation.status)
    announce(tx, "reservation.cancelled", reservation_id)
    return get_reservation(tx, reservation_id)


def take_back(tx: Transaction, reservation_id: str, *, actor: str) -> Reservation:
    """Undo `leave` or `mark_no_show`: the party has its status and its tables again.

    If a no-show becomes confirmed again, the webhook endpoints are notified of this. Raises
    NotFound if the id is unknown, WrongState if there is nothing to undo or the evening is over,
    and TableTaken if somebody else holds a table by now.
    """
    reservation = get_reservation(tx, reservation_id)
    if not reservation.is_gone or evening_is_over(tx, reservation):
        raise WrongState(state=reservation.status)
    what = "left" if reservation.left_at else "no_show"
    status = next(
        entry.detail["status"] for entry in list_history(tx, reservation_id) if entry.what == what
    )
    hours = (reservation.starts, reservation.ends)
    hold_tables(
        tx, reservation.table_ids, reservation.date, hours, reservation.source, seq=reservation.seq
    )
    update_reservation(
        tx, reservation_id, status=status, left_at=None, cancelled_at=None, cancelled_by=None,
        no_show=0,
    )  # fmt: skip
    add_history(tx, reservation_id, f"{what}_undone", actor)
    is_confirmed_again = what == "no_show" and status == "confirmed"
    announce(tx, f"reservation.{'confirmed' if is_confirmed_again else 'updated'}", reservation_id)
    return get_reservation(tx, reservation_id)
