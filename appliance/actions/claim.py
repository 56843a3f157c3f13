"""Claim: a guest keeps a reservation in their browser, and corrects what it says of them."""

import json
from dataclasses import dataclass

from appliance.errors import (
    RateLimited,
    WrongState,
    field_invalid,
)
from appliance.model.booking import check_customer, plain_phone
from appliance.model.letter import LANGUAGES
from appliance.model.reservation import Reservation
from appliance.store.claims import add_claim
from appliance.store.connection import Transaction
from appliance.store.reservations import add_history, get_reservation, update_reservation

_OPEN = ("requested", "pending", "partial", "confirmed")
# In all, by whoever has the link: each leaves lines that staff read, and that are kept.
_MOST_CHANGES = 100


@dataclass(frozen=True, slots=True)
class Correction:
    """What a guest corrects; None leaves it as it is."""

    name: str | None = None
    email: str | None = None
    phone: str | None = None
    language: str | None = None


def claim(
    tx: Transaction, reservation_id: str, device_hash: bytes | None,
    correction: Correction | None = None,
) -> Reservation:  # fmt: skip
    """Bind the reservation to a browser, if it can keep one, and correct it.

    A second tap in the same browser changes nothing. What is cancelled or over is neither
    bound nor corrected. Refusals as `correct`, RateLimited too for ever more browsers.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status not in _OPEN:
        return reservation
    if correction is not None:
        reservation = correct(tx, reservation_id, correction)
    if device_hash is not None and add_claim(tx, device_hash, reservation_id):
        _demand_patience(tx, reservation_id)
        add_history(tx, reservation_id, "claimed", "guest")
    return reservation


def correct(tx: Transaction, reservation_id: str, correction: Correction) -> Reservation:
    """Write down how the guest spells their name, and how they can be reached.

    CustomerNameRequired, InvalidEmail and ValidationError as at creation; WrongState once the
    reservation is cancelled or over; RateLimited after a hundred changes. The pass in
    the guest's hands stays good.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status not in _OPEN:
        raise WrongState(state=reservation.status)
    check_customer(correction.name, correction.email, correction.phone, "")
    if correction.language is not None and correction.language not in LANGUAGES:
        raise field_invalid("language", "language")
    wanted = {
        "customer_name": correction.name,
        "customer_email": correction.email,
        "customer_phone": plain_phone(correction.phone),
        "language": correction.language,
    }
    changed = {
        column: value
        for column, value in wanted.items()
        if value is not None and getattr(reservation, column) != value
    }
    if not changed:
        return reservation
    _demand_patience(tx, reservation_id)
    update_reservation(tx, reservation_id, **changed)
    detail = json.dumps({"changed": sorted(changed)})
    add_history(tx, reservation_id, "amended", "guest", detail)
    return get_reservation(tx, reservation_id)


def _demand_patience(tx: Transaction, reservation_id: str) -> None:
    sql = "SELECT count(*) FROM history WHERE reservation_id = :id AND actor = 'guest'"
    if tx.value(sql, {"id": reservation_id}) >= _MOST_CHANGES:
        raise RateLimited
