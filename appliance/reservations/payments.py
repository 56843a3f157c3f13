"""Payments that staff record for a prepaid reservation, and void (interface, section 3)."""

import json

from appliance.core.errors import NotFound, UnusualAmount, WrongState, field_invalid
from appliance.database.connection import Transaction
from appliance.outbox import announce
from appliance.reservations.emails import email_guest
from appliance.reservations.model import Reservation
from appliance.reservations.rows import (
    add_history,
    get_reservation,
    list_payments,
    sum_payments,
    update_reservation,
)
from appliance.staff.audit_log import record_audit
from appliance.venue.rows import find_table, get_venue

AMOUNT_MAX = 10**9
# Above so many times the table's minimum spend, or so much a guest where it has none, an amount is
# asked for twice. No bound that refuses would fit every currency.
USUAL_TIMES = 10
USUAL_PER_GUEST = 10_000


def record_payment(
    tx: Transaction, reservation_id: str,
    *, amount: int, method: str, complete: bool, actor: str, sure: bool = False,
) -> Reservation:  # fmt: skip
    """pending → partial, or → confirmed when `complete`, with `reservation.confirmed`.

    The guest gets the confirmation, or a letter on what is still due. `amount` is in whole
    currency units. WrongState unless pending or partial; UnusualAmount for one that is far
    above what the table brings, unless the author is `sure`.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status not in {"pending", "partial"}:
        raise WrongState(state=reservation.status)
    if not 0 < amount <= AMOUNT_MAX:
        raise field_invalid("amount", "whole_number", largest=AMOUNT_MAX)
    if amount > _usual_most(tx, reservation) and not sure:
        raise UnusualAmount
    tx.insert(
        "payment",
        {"id": tx.new_id(), "reservation_id": reservation_id, "at": tx.now, "amount": amount,
         "method": method, "staff_id": actor.removeprefix("staff:")},
    )  # fmt: skip
    update_reservation(tx, reservation_id, status="confirmed" if complete else "partial")
    add_history(tx, reservation_id, "payment", actor, json.dumps({"amount": amount}))
    if complete:
        announce(tx, "reservation.confirmed", reservation_id)
    email_guest(tx, reservation_id, "confirmation" if complete else "payment_due")
    return get_reservation(tx, reservation_id)


def void_payment(
    tx: Transaction, reservation_id: str, payment_id: str, *, reason: str, actor: str
) -> Reservation:
    """The payment counts no more; its row stays, the history and the audit log say why and who.

    A reservation that was paid falls back to partial while another payment stands, else to
    pending: it holds its table all the while. A cancelled or completed one stays so. No event
    says less than confirmed: the next full payment announces `reservation.confirmed` again.
    NotFound for a payment of another reservation, and for one that was voided.
    """
    reservation = get_reservation(tx, reservation_id)
    standing = {p.id: p for p in list_payments(tx, reservation_id) if p.voided_at is None}
    if payment_id not in standing:
        raise NotFound
    amount = standing[payment_id].amount
    tx.update("payment", payment_id, voided_at=tx.now)
    status = reservation.status
    if status in {"partial", "confirmed"}:
        status = "partial" if sum_payments(tx, reservation_id) else "pending"
    update_reservation(tx, reservation_id, status=status)
    detail = {"amount": amount, "reason": reason}  # erased with the guest's data
    add_history(tx, reservation_id, "payment_voided", actor, json.dumps(detail))
    money = f"{amount} {get_venue(tx).currency}"
    record_audit(tx, actor, "payment_voided", amount=money, reservation=reservation_id)
    return get_reservation(tx, reservation_id)


def _usual_most(tx: Transaction, reservation: Reservation) -> int:
    table = find_table(tx, reservation.table_id)
    minimum = table.minimum_spend if table else 0
    return USUAL_TIMES * minimum or USUAL_PER_GUEST * reservation.guests
