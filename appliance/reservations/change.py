"""Change a reservation: amend, move, accept, decline, cancel or claim (interface, section 3)."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from appliance.api_keys import ApiKey
from appliance.core.errors import (
    ChangedMeanwhile,
    FewerThanArrived,
    NotFound,
    RateLimited,
    TableNotFound,
    TooLateToCancel,
    WrongState,
    check_length,
    field_invalid,
)
from appliance.database.connection import Transaction
from appliance.outbox import announce
from appliance.reservations.email_queue import LANGUAGES, email_guest
from appliance.reservations.model import (
    FREEING_STATUSES,
    LAST_GENERATION,
    OPEN_STATUSES,
    Reservation,
    cancel_deadline,
)
from appliance.reservations.request import NOTES_MAX, check_customer
from appliance.reservations.rows import (
    add_history,
    free_tables,
    get_reservation,
    move_hold,
    update_reservation,
)
from appliance.staff.audit_log import record_audit
from appliance.venue.model import check_seats, find_table

P = ParamSpec("P")
R = TypeVar("R")

# Maximum number of changes that guests can make to one reservation. Without this limit, anyone with
# the link could add any number of entries to the reservation's history.
_GUEST_CHANGES_MAX = 100


def as_seen(
    tx: Transaction, reservation_id: str, seen: int,
    action: Callable[Concatenate[Transaction, str, P], R], *args: P.args, **kwargs: P.kwargs,
) -> R:  # fmt: skip
    """Run `action(tx, reservation_id, …)` if the reservation's version is still `seen`.

    `seen` is the version that the form showed. Each change increments the version, so a form that
    is submitted twice takes effect only once. Raises ChangedMeanwhile if the version differs, and
    NotFound if the id is unknown.
    """
    if get_reservation(tx, reservation_id).version != seen:
        raise ChangedMeanwhile
    return action(tx, reservation_id, *args, **kwargs)


def _get_open(tx: Transaction, reservation_id: str) -> Reservation:
    reservation = get_reservation(tx, reservation_id)
    if reservation.status not in OPEN_STATUSES:
        raise WrongState(state=reservation.status)
    return reservation


def accept(tx: Transaction, reservation_id: str, *, actor: str) -> Reservation:
    """Accept a request: confirm the reservation, and notify the webhook endpoints and the guest.

    Raises WrongState unless the reservation's status is `requested`.
    """
    return _settle_request(tx, reservation_id, "confirmed", "accepted", actor)


def decline(tx: Transaction, reservation_id: str, *, actor: str) -> Reservation:
    """Decline a request: free the table, and notify the webhook endpoints and the guest.

    Raises WrongState unless the reservation's status is `requested`.
    """
    return _settle_request(tx, reservation_id, "declined", "declined", actor)


def _settle_request(
    tx: Transaction, reservation_id: str, status: str, what: str, actor: str
) -> Reservation:
    reservation = get_reservation(tx, reservation_id)
    if reservation.status != "requested":
        raise WrongState(state=reservation.status)
    update_reservation(tx, reservation_id, status=status)
    if status in FREEING_STATUSES:
        free_tables(tx, reservation)
    add_history(tx, reservation_id, what, actor)
    announce(tx, f"reservation.{status}", reservation_id)
    email_guest(tx, reservation_id, what)
    return get_reservation(tx, reservation_id)


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A cancelled reservation. `already` is True if it had been cancelled before this request."""

    reservation: Reservation
    already: bool


def cancel_own(
    tx: Transaction, key: ApiKey, reservation_id: str, *, notify: bool = True
) -> Cancelled:
    """Cancel a reservation at the partner's request, like `cancel()` (interface, section 4).

    Also raises NotFound if the reservation was created with a key of a different lineage.
    """
    if get_reservation(tx, reservation_id).lineage != key.lineage:
        raise NotFound
    return cancel(tx, reservation_id, actor=f"key:{key.id}", notify=notify)


def cancel_by_guest(tx: Transaction, reservation_id: str, cancel_hours: int) -> Cancelled:
    """Cancel a reservation at the guest's request, like `cancel()`. Idempotent.

    Raises TooLateToCancel if the party has checked in or the deadline (`cancel_hours` before the
    start) has passed, and WrongState if the reservation is declined or completed.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status == "completed":
        raise WrongState(state=reservation.status)
    if reservation.holds:
        deadline = cancel_deadline(tx, reservation, cancel_hours)
        if reservation.checked_in_at is not None or tx.now >= deadline:
            raise TooLateToCancel
    return cancel(tx, reservation_id, actor="guest")


def cancel(tx: Transaction, reservation_id: str, *, actor: str, notify: bool = True) -> Cancelled:
    """Cancel a reservation that holds its table. Idempotent. `checkedInAt` does not change.

    If `notify` is True, the guest gets an email, unless a rule in `email_guest` prevents it. Raises
    NotFound if the id is unknown, and WrongState if the reservation is declined.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status == "cancelled":
        return Cancelled(reservation, already=True)
    if reservation.status == "declined":
        raise WrongState(state=reservation.status)
    update_reservation(tx, reservation_id, status="cancelled", cancelled_at=tx.now)
    free_tables(tx, reservation)
    add_history(tx, reservation_id, "cancelled", actor)
    announce(tx, "reservation.cancelled", reservation_id)
    if notify:
        email_guest(tx, reservation_id, "cancelled", by_guest=actor == "guest")
    return Cancelled(get_reservation(tx, reservation_id), already=False)


@dataclass(frozen=True, slots=True)
class Amendment:
    """The values for all editable fields of a reservation, including unchanged values."""

    guests: int
    customer_name: str
    customer_email: str | None
    customer_phone: str | None
    notes: str | None
    vip: bool = False


def check_amendment(amendment: Amendment) -> None:
    """Validate the fields with the rules for new reservations.

    Unlike a new reservation, an amended one needs neither an email address nor a phone number.
    """
    check_customer(
        amendment.customer_name, amendment.customer_email, amendment.customer_phone, "customer_"
    )
    check_length(amendment.notes or "", "notes", NOTES_MAX)


def amend_reservation(
    tx: Transaction, reservation_id: str, amendment: Amendment,
    *, actor: str, over_capacity: bool = False,
) -> Reservation:  # fmt: skip
    """Change the number of guests, the customer, the notes and the VIP flag.

    The guest's pass stays valid. Raises NotFound if the id is unknown; WrongState if the
    reservation is cancelled, declined or completed; the errors of `check_amendment`;
    FewerThanArrived if fewer guests are wanted than have arrived; and GuestsOutOfRange if the table
    does not seat the new number of guests, unless `over_capacity` is True.
    """
    reservation = _get_open(tx, reservation_id)
    check_amendment(amendment)
    if amendment.guests < reservation.arrived:
        raise FewerThanArrived(field="guests", arrived=reservation.arrived)
    table = find_table(tx, reservation.table_id)
    if table is not None and amendment.guests != reservation.guests and not over_capacity:
        check_seats(table, amendment.guests, "guests")
    return _amend(tx, reservation, asdict(amendment), actor)


def _amend(
    tx: Transaction, reservation: Reservation, wanted: dict[str, Any], actor: str
) -> Reservation:
    """Store the columns in `wanted` whose values differ, and add their names to the history."""
    changed = {name: value for name, value in wanted.items() if getattr(reservation, name) != value}
    if not changed:
        return reservation
    detail: dict[str, Any] = {"changed": sorted(changed)}
    if "guests" in changed:
        detail["guests"] = [reservation.guests, changed["guests"]]
    update_reservation(tx, reservation.id, **changed)
    add_history(tx, reservation.id, "amended", actor, **detail)
    return get_reservation(tx, reservation.id)


def move_to_table(
    tx: Transaction, reservation_id: str, table_id: str, *, actor: str, over_capacity: bool = False
) -> Reservation:
    """Move the party to another table for the same evening and slot. The pass stays valid.

    The new table may be unbookable. Raises TableNotFound if it does not exist, TableTaken if it is
    held at that time, GuestsOutOfRange if it does not seat the party (unless `over_capacity` is
    True), and NotFound and WrongState in the same cases as `amend_reservation`.
    """
    reservation = _get_open(tx, reservation_id)
    table = find_table(tx, table_id)
    if table is None:
        raise TableNotFound
    if table.id == reservation.table_id:
        return reservation
    move_hold(tx, reservation, table_id)
    if not over_capacity:
        check_seats(table, reservation.guests, "table")
    update_reservation(tx, reservation_id, table_id=table_id)
    add_history(
        tx, reservation_id, "moved", actor, **{"from": reservation.table_id, "to": table_id}
    )
    return get_reservation(tx, reservation_id)


def mark_late(tx: Transaction, reservation_id: str, *, late: bool, actor: str) -> Reservation:
    """Record that the party will be late or, if `late` is False, that it will not.

    Raises NotFound and WrongState in the same cases as `amend_reservation`.
    """
    reservation = _get_open(tx, reservation_id)
    if (reservation.late_at is not None) != late:
        update_reservation(tx, reservation_id, late_at=tx.now if late else None)
        add_history(tx, reservation_id, "late" if late else "not_late", actor)
    return get_reservation(tx, reservation_id)


def reissue_pass(tx: Transaction, reservation_id: str, *, actor: str) -> Reservation:
    """Issue a new guest pass. The guest's link shows it at once.

    At check-in, older passes are refused as `revoked`. The access code does not change. Raises
    NotFound and WrongState in the same cases as `amend_reservation`, and WrongState if the pass
    already has the last generation number.
    """
    reservation = _get_open(tx, reservation_id)
    if reservation.generation >= LAST_GENERATION:
        raise WrongState(state=reservation.status)
    update_reservation(tx, reservation_id, generation=reservation.generation + 1)
    add_history(tx, reservation_id, "pass_reissued", actor)
    record_audit(
        tx, actor, "pass_reissued",
        reservation=reservation_id, date=reservation.date, table=reservation.table_name,
    )  # fmt: skip
    return get_reservation(tx, reservation_id)


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
    corrected = _amend(tx, reservation, wanted, "guest")
    if corrected.version != reservation.version:
        _check_guest_changes(tx, reservation_id)
    return corrected


def _check_guest_changes(tx: Transaction, reservation_id: str) -> None:
    """Raise RateLimited if guests have changed this reservation more than a hundred times."""
    sql = "SELECT count(*) FROM history WHERE reservation_id = :id AND actor = 'guest'"
    if tx.value(sql, {"id": reservation_id}) > _GUEST_CHANGES_MAX:
        raise RateLimited
