"""Record a payment that staff received for a prepaid reservation (contract section 3)."""

import json

from appliance.actions.announce import announce
from appliance.actions.queue_letter import write_to_guest
from appliance.errors import WrongState
from appliance.model.booking import field_invalid
from appliance.model.reservation import Reservation
from appliance.store.connection import Transaction
from appliance.store.reservations import add_history, get_reservation, update_reservation

AMOUNT_MAX = 10**9


def record_payment(
    tx: Transaction, reservation_id: str, *, amount: int, method: str, complete: bool, actor: str
) -> Reservation:
    """pending → partial, or → confirmed when `complete`, with `reservation.confirmed`.

    The guest gets the confirmation, or a letter on what is still due. `amount` is in whole
    currency units. WrongState unless pending or partial.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status not in {"pending", "partial"}:
        raise WrongState(state=reservation.status)
    if not 0 < amount <= AMOUNT_MAX:
        raise field_invalid(
            "amount",
            "un entier de 1 à {largest}.",
            "a whole number from 1 to {largest}.",
            largest=AMOUNT_MAX,
        )
    tx.insert(
        "payment",
        {"id": tx.new_id(), "reservation_id": reservation_id, "at": tx.now, "amount": amount,
         "method": method, "staff_id": actor.removeprefix("staff:")},
    )  # fmt: skip
    update_reservation(tx, reservation_id, status="confirmed" if complete else "partial")
    add_history(tx, reservation_id, "payment", actor, json.dumps({"amount": amount}))
    if complete:
        announce(tx, "reservation.confirmed", reservation_id)
    write_to_guest(tx, reservation_id, "confirmation" if complete else "payment_due")
    return get_reservation(tx, reservation_id)
