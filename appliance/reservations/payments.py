"""Record and void payments for prepaid reservations (interface, section 3)."""

from appliance.core.errors import NotFound, UnusualAmount, WrongState, field_invalid
from appliance.database.connection import Transaction
from appliance.outbox import announce
from appliance.reservations.email_queue import email_guest
from appliance.reservations.holds import get_seat
from appliance.reservations.model import Reservation
from appliance.reservations.rows import (
    add_history,
    get_reservation,
    list_payments,
    sum_payments,
    update_reservation,
)
from appliance.staff.audit_log import record_audit
from appliance.venue.model import get_venue

AMOUNT_MAX = 10**9
# Staff must confirm an unusually high payment. What is unusual depends on the table's minimum
# spend, because no single amount would suit every currency.
USUAL_TIMES = 10  # highest usual payment, as a multiple of the table's minimum spend
USUAL_PER_GUEST = 10_000  # highest usual payment per guest, if there is no minimum spend


def record_payment(
    tx: Transaction, reservation_id: str,
    *, amount: int, method: str, complete: bool, actor: str, sure: bool = False,
) -> Reservation:  # fmt: skip
    """Record a payment of `amount` (whole currency units), and email the guest.

    If `complete` is True, the reservation becomes confirmed, a `reservation.confirmed` event is
    sent, and the guest gets a confirmation. Otherwise, the reservation becomes partial, and the
    email states the minimum spend and the total received so far. From the first payment on, there
    is no deadline, so that the box never cancels what a guest has paid for. Raises WrongState
    unless the reservation is pending or partial, ValidationError if `amount` is out of range, and
    UnusualAmount if `amount` is unusually high and `sure` is False.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status not in {"pending", "partial"}:
        raise WrongState(state=reservation.status)
    if not 0 < amount <= AMOUNT_MAX:
        raise field_invalid("amount", "a whole number from 1 to {largest}.", largest=AMOUNT_MAX)
    if amount > _usual_maximum(tx, reservation) and not sure:
        raise UnusualAmount
    tx.insert(
        "payment",
        {"id": tx.new_id(), "reservation_id": reservation_id, "at": tx.now, "amount": amount,
         "method": method, "staff_id": actor.removeprefix("staff:")},
    )  # fmt: skip
    status = "confirmed" if complete else "partial"
    update_reservation(tx, reservation_id, status=status, expires_at=None)
    add_history(tx, reservation_id, "payment", actor, amount=amount)
    if complete:
        announce(tx, "reservation.confirmed", reservation_id)
    email_guest(tx, reservation_id, "confirmation" if complete else "payment_due")
    return get_reservation(tx, reservation_id)


def void_payment(
    tx: Transaction, reservation_id: str, payment_id: str, *, reason: str, actor: str
) -> Reservation:
    """Void a payment. Keep its row, and record the actor in the history and the audit log.

    A partial or confirmed reservation becomes partial if other payments remain, otherwise pending.
    It still holds its table. Other statuses do not change. No event is sent. If staff later record
    that the reservation is fully paid, a `reservation.confirmed` event is sent again. Raises
    NotFound if the reservation has no such payment, or if the payment is already voided.
    """
    reservation = get_reservation(tx, reservation_id)
    valid = {p.id: p.amount for p in list_payments(tx, reservation_id) if p.voided_at is None}
    if payment_id not in valid:
        raise NotFound
    amount = valid[payment_id]
    tx.update("payment", payment_id, voided_at=tx.now)
    status = reservation.status
    if status in {"partial", "confirmed"}:
        status = "partial" if sum_payments(tx, reservation_id) else "pending"
    update_reservation(tx, reservation_id, status=status)
    # Record the reason only in the history. It may contain the guest's name, which an erasure
    # deletes from the history but not from the audit log.
    add_history(tx, reservation_id, "payment_voided", actor, amount=amount, reason=reason)
    with_currency = f"{amount} {get_venue(tx).currency}"
    record_audit(tx, actor, "payment_voided", amount=with_currency, reservation=reservation_id)
    return get_reservation(tx, reservation_id)


def _usual_maximum(tx: Transaction, reservation: Reservation) -> int:
    minimum = get_seat(tx, reservation).minimum_spend
    return USUAL_TIMES * minimum or USUAL_PER_GUEST * reservation.guests
