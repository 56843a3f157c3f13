"""Changes that guests make themselves: claim, correct, cancel, fewer guests, late arrival."""

from dataclasses import dataclass

from appliance.core.errors import RateLimited, TooLate, WrongState, field_invalid
from appliance.database.connection import Transaction
from appliance.reservations.change import Cancelled, cancel, change_reservation, mark_late
from appliance.reservations.email_queue import notify_venue
from appliance.reservations.model import (
    LANGUAGES,
    OPEN_STATUSES,
    Reservation,
    cancel_deadline,
    late_deadline,
)
from appliance.reservations.request import check_customer
from appliance.reservations.rows import add_history, get_reservation

# Maximum number of changes that guests can make to one reservation. Without this limit, anyone with
# the link could add any number of entries to the reservation's history.
_GUEST_CHANGES_MAX = 100


def cancel_by_guest(tx: Transaction, reservation_id: str) -> Cancelled:
    """Cancel a reservation at the guest's request, like `cancel()`. Idempotent.

    Raises TooLate if the party has checked in or the deadline (the venue's `cancel_hours` before
    the start) has passed, and WrongState if the reservation is declined or completed.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status == "completed":
        raise WrongState(state=reservation.status)
    if reservation.holds:
        _check_time(tx, reservation, cancel_deadline(tx, reservation))
    return cancel(tx, reservation_id, actor="guest")


def come_with_fewer(tx: Transaction, reservation_id: str, guests: int) -> Reservation:
    """Lower the number of guests, even below the table's minimum. The venue is notified.

    Raises ValidationError for 0 or more guests than now, TooLate in the same cases as
    `cancel_by_guest`, WrongState if the reservation is closed, and RateLimited after a hundred
    changes by guests.
    """
    reservation = get_reservation(tx, reservation_id)
    _check_time(tx, reservation, cancel_deadline(tx, reservation))
    if not 1 <= guests <= reservation.guests:
        raise field_invalid(
            "guests", "please give a whole number from {smallest} to {largest}.",
            smallest=1, largest=reservation.guests,
        )  # fmt: skip
    changed = change_reservation(
        tx, reservation_id, {"guests": guests}, actor="guest", over_capacity=True, notify=None
    ).reservation
    if changed.version != reservation.version:
        notify_venue(tx, reservation_id, "house_changed")
        _check_guest_changes(tx, reservation_id)
    return changed


def tell_late(tx: Transaction, reservation_id: str, *, late: bool) -> Reservation:
    """Notify the venue that the party comes late or, if `late` is False, on time after all.

    Raises TooLate if the party has checked in or its table is not kept any longer, WrongState if
    the reservation is closed, and RateLimited after a hundred changes by guests.
    """
    reservation = get_reservation(tx, reservation_id)
    _check_time(tx, reservation, late_deadline(tx, reservation))
    marked = mark_late(tx, reservation_id, late=late, actor="guest")
    _check_guest_changes(tx, reservation_id)
    return marked


def _check_time(tx: Transaction, reservation: Reservation, deadline: int) -> None:
    if reservation.checked_in_at is not None or tx.now >= deadline:
        raise TooLate


@dataclass(frozen=True, slots=True)
class Correction:
    """A guest's correction to their own data. None leaves a field unchanged."""

    name: str | None = None
    email: str | None = None
    phone: str | None = None
    language: str | None = None


def claim(
    tx: Transaction, reservation_id: str, device_hash: bytes | None,
    correction: Correction | None = None,
) -> Reservation:  # fmt: skip
    """Apply the guest's correction, and save the reservation for the guest's browser.

    `device_hash` identifies the browser. If it is None, the reservation is not saved. Saving the
    reservation again for the same browser has no effect. A cancelled, declined or completed
    reservation is neither saved nor corrected. Raises the same errors as `correct`, except
    WrongState. Saving the reservation for another browser counts as a change by guests, so it can
    also raise RateLimited.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status not in OPEN_STATUSES:
        return reservation
    if correction is not None:
        reservation = correct(tx, reservation_id, correction)
    sql = """INSERT INTO claim (device_hash, reservation_id, at)
             VALUES (:device, :id, :at) ON CONFLICT DO NOTHING"""
    claimed = {"device": device_hash, "id": reservation_id, "at": tx.now}
    if device_hash is not None and tx.execute(sql, claimed):
        add_history(tx, reservation_id, "claimed", "guest")
        _check_guest_changes(tx, reservation_id)
    return reservation


def correct(tx: Transaction, reservation_id: str, correction: Correction) -> Reservation:
    """Update the guest's name, email address, phone number and language.

    The guest's pass stays valid. Raises CustomerNameRequired, InvalidEmail or ValidationError if
    a value is invalid, WrongState if the reservation is cancelled, declined or completed, and
    RateLimited after a hundred changes by guests.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status not in OPEN_STATUSES:
        raise WrongState(state=reservation.status)
    check_customer(correction.name, correction.email, correction.phone, "")
    if correction.language is not None and correction.language not in LANGUAGES:
        raise field_invalid("language", "fr, en or ar expected.")
    wanted = {
        "customer_name": correction.name or reservation.customer_name,
        "customer_email": correction.email or reservation.customer_email,
        "customer_phone": correction.phone or reservation.customer_phone,
        "language": correction.language or reservation.language,
    }
    corrected = change_reservation(tx, reservation_id, wanted, actor="guest").reservation
    if corrected.version != reservation.version:
        _check_guest_changes(tx, reservation_id)
    return corrected


def _check_guest_changes(tx: Transaction, reservation_id: str) -> None:
    """Raise RateLimited if guests have changed this reservation more than a hundred times."""
    sql = "SELECT count(*) FROM history WHERE reservation_id = :id AND actor = 'guest'"
    if tx.value(sql, {"id": reservation_id}) > _GUEST_CHANGES_MAX:
        raise RateLimited
