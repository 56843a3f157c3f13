"""Enter: reservations from the booking page and from staff (interface, section 3)."""

import hashlib
from typing import Literal

from appliance.actions.grant import grant
from appliance.actions.queue_letter import queue_letter, write_to_guest
from appliance.house_errors import FormUsed
from appliance.model.booking import Booking
from appliance.model.reservation import Reservation
from appliance.store.connection import Transaction
from appliance.store.reservations import find_issued, get_reservation
from appliance.store.venue import get_venue

_HOUR = 3_600_000
GUEST_LINE = "guest"  # the lineage of booking forms, each with an idempotency key of its own
_LETTERS = {"confirmed": "confirmation", "requested": "requested", "pending": "payment_due"}


def enter_for_guest(
    tx: Transaction, booking: Booking, *, writes: bool = False, request_hash: bytes | None = None
) -> Reservation:
    """A guest's booking on the venue's own page (`platform`); with `writes` they get a letter.

    `request_hash` is that of the form, where it left the table to the house.

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
        tx, booking, source="platform", status=status, actor="guest", expires_at=expires_at,
        lineage=GUEST_LINE if booking.idempotency_key is not None else None,
        idempotency_key=booking.idempotency_key, request_hash=request_hash or booking.fingerprint(),
    )  # fmt: skip
    if writes:
        write_to_guest(tx, issued.reservation_id, _LETTERS[status], by_guest=True)
    return get_reservation(tx, issued.reservation_id)


def enter_by_staff(
    tx: Transaction, booking: Booking,
    *, actor: str, letter: Literal["send", "keep"] | None = None, vip: bool = False,
) -> Reservation:  # fmt: skip
    """A reservation that staff wrote down (`manual`): confirmed.

    The same `idempotency_key` by the same actor is one reservation, however often the form is
    sent; FormUsed when it then says something else. With `letter` the guest gets the
    confirmation, if there is an address (`keep`: the test environment's outbox does).
    """
    request_hash = hashlib.sha256(
        booking.fingerprint() + repr((letter is not None, vip)).encode()
    ).digest()
    earlier = find_made(tx, actor, booking.idempotency_key, request_hash)
    if earlier is not None:
        return earlier
    issued = grant(
        tx, booking, source="manual", status="confirmed", actor=actor, vip=int(vip),
        lineage=actor if booking.idempotency_key is not None else None,
        idempotency_key=booking.idempotency_key, request_hash=request_hash,
    )  # fmt: skip
    if letter is not None and booking.customer_email is not None:
        queue_letter(
            tx, issued.reservation_id, "confirmation", booking.customer_email, booking.language,
            keep=letter == "keep",
        )  # fmt: skip
    return get_reservation(tx, issued.reservation_id)


def find_made(
    tx: Transaction, lineage: str, form_id: str | None, request_hash: bytes
) -> Reservation | None:
    """What this form has made, None when it comes for the first time.

    FormUsed when it says something else than then, or when its reservation holds no table any
    more: whoever goes back and sends it again means another reservation.
    """
    earlier = find_issued(tx, lineage, form_id) if form_id is not None else None
    if earlier is None:
        return None
    issued, first_hash = earlier
    made = get_reservation(tx, issued.reservation_id)
    # Of an erased guest nothing is left to compare with.
    if not made.holds or (first_hash is not None and first_hash != request_hash):
        raise FormUsed
    return made
