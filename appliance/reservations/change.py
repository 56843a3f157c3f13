"""Change a reservation: amend, accept, decline, cancel (interface, section 3)."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from appliance.api_keys import ApiKey
from appliance.core.errors import (
    ChangedMeanwhile,
    GuestsOutOfRange,
    NotFound,
    TableNotFound,
    TableTaken,
    TooLateToCancel,
    WrongState,
    field_invalid,
)
from appliance.database.connection import Reader, Transaction
from appliance.outbox import announce
from appliance.reservations.emails import email_guest
from appliance.reservations.guest_terms import cancel_deadline
from appliance.reservations.model import LAST_GENERATION, Reservation
from appliance.reservations.request import NOTES_MAX, check_customer, plain_phone
from appliance.reservations.rows import add_history, get_reservation, is_held, update_reservation
from appliance.staff.audit_log import record_audit
from appliance.venue.rows import find_table, get_venue, list_slots

P = ParamSpec("P")
R = TypeVar("R")


def get_as_seen(reader: Reader, reservation_id: str, seen: int) -> Reservation:
    """Return the reservation. ChangedMeanwhile if its version is not `seen`; NotFound."""
    reservation = get_reservation(reader, reservation_id)
    if reservation.version != seen:
        raise ChangedMeanwhile
    return reservation


def as_seen(
    tx: Transaction, reservation_id: str, seen: int,
    action: Callable[Concatenate[Transaction, str, P], R], *args: P.args, **kwargs: P.kwargs,
) -> R:  # fmt: skip
    """Run `action(tx, reservation_id, …)` if the reservation's version is `seen`.

    `seen` is the version that the form showed, so a form sent twice applies once. Raises
    ChangedMeanwhile or NotFound.
    """
    get_as_seen(tx, reservation_id, seen)
    return action(tx, reservation_id, *args, **kwargs)


def accept(tx: Transaction, reservation_id: str, *, actor: str) -> Reservation:
    """Accept: requested → confirmed, with `reservation.confirmed` and an email. WrongState."""
    return _answer(tx, reservation_id, "confirmed", "accepted", actor)


def decline(tx: Transaction, reservation_id: str, *, actor: str) -> Reservation:
    """Decline: requested → declined, with `reservation.declined` and an email. WrongState."""
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
    email_guest(tx, reservation_id, what)
    return get_reservation(tx, reservation_id)


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A cancelled reservation, and whether it already was."""

    reservation: Reservation
    already: bool


def cancel_own(
    tx: Transaction, key: ApiKey, reservation_id: str, *, notify: bool = True
) -> Cancelled:
    """Cancel for a partner. NotFound unless its key's lineage created it (interface, section 4)."""
    if get_reservation(tx, reservation_id).lineage != key.lineage:
        raise NotFound
    return cancel(tx, reservation_id, actor=f"key:{key.id}", notify=notify)


def cancel(tx: Transaction, reservation_id: str, *, actor: str, notify: bool = True) -> Cancelled:
    """Cancel in any state that holds the table; `checkedInAt` is kept. Idempotent.

    The guest gets an email, if one is due, unless `notify` is false. NotFound for an unknown
    id; WrongState if it was declined.
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
        email_guest(tx, reservation_id, "cancelled", by_guest=actor == "guest")
    return Cancelled(get_reservation(tx, reservation_id), already=False)


_OPEN = ("requested", "pending", "partial", "confirmed")


@dataclass(frozen=True, slots=True)
class Amendment:
    """The new values of a reservation's editable fields, changed or not."""

    guests: int
    customer_name: str
    customer_email: str | None
    customer_phone: str | None
    notes: str | None
    vip: bool = False


def amend_reservation(
    tx: Transaction, reservation_id: str, seen: int, amendment: Amendment,
    *, actor: str, over_capacity: bool = False,
) -> Reservation:  # fmt: skip
    """Change party, customer and notes. The guest's pass stays valid.

    `seen` is the version that the form showed. ChangedMeanwhile if it is not the present one;
    WrongState once the reservation is over; field errors as at creation; GuestsOutOfRange if
    `guests` exceeds the table's capacity, unless `over_capacity`, or is less than the number
    arrived.
    """
    reservation = _get_open(tx, reservation_id, seen)
    check_amendment(amendment)
    table = find_table(tx, reservation.table_id)
    least = max(1, reservation.arrived)
    most = table.capacity_max if table is not None else amendment.guests
    if amendment.guests < least or (amendment.guests > most and not over_capacity):
        raise GuestsOutOfRange(field="guests", capacity_min=least, capacity_max=most)
    wanted = asdict(amendment) | {"customer_phone": plain_phone(amendment.customer_phone)}
    changed = {name: value for name, value in wanted.items() if getattr(reservation, name) != value}
    if changed:
        update_reservation(tx, reservation_id, **changed)
        detail: dict[str, Any] = {"changed": sorted(changed)}
        if "guests" in changed:
            detail |= {"guests": [reservation.guests, amendment.guests]}
        add_history(tx, reservation_id, "amended", actor, json.dumps(detail))
    return get_reservation(tx, reservation_id)


def move_to_table(
    tx: Transaction, reservation_id: str, seen: int, table_id: str, *, actor: str
) -> Reservation:
    """Move the party to another table in the same evening and slot; the pass stays valid.

    Staff may use tables that partners cannot book, or meant for fewer guests. TableNotFound;
    TableTaken; other errors as `amend_reservation`.
    """
    reservation = _get_open(tx, reservation_id, seen)
    table = find_table(tx, table_id)
    if table is None:
        raise TableNotFound
    if table.id == reservation.table_id:
        return reservation
    if is_held(
        tx, table_id, reservation.date, reservation.starts, reservation.ends, reservation.seq
    ):
        raise TableTaken
    update_reservation(tx, reservation_id, table_id=table_id)
    detail = {"from": reservation.table_id, "to": table_id}
    add_history(tx, reservation_id, "moved", actor, json.dumps(detail))
    return get_reservation(tx, reservation_id)


def mark_late(
    tx: Transaction, reservation_id: str, seen: int, *, late: bool, actor: str
) -> Reservation:
    """Set or clear the note that the party announced to be late. WrongState once over."""
    reservation = _get_open(tx, reservation_id, seen)
    if (reservation.late_at is not None) != late:
        update_reservation(tx, reservation_id, late_at=tx.now if late else None)
        add_history(tx, reservation_id, "late" if late else "not_late", actor)
    return get_reservation(tx, reservation_id)


def reissue_pass(tx: Transaction, reservation_id: str, seen: int, *, actor: str) -> Reservation:
    """Issue a new pass, which the guest's link shows at once; older passes are `revoked`.

    The access code is kept. ChangedMeanwhile; NotFound; WrongState once the reservation is
    over, or if no generation is left.
    """
    reservation = _get_open(tx, reservation_id, seen)
    if reservation.generation >= LAST_GENERATION:
        raise WrongState(state=reservation.status)
    update_reservation(tx, reservation_id, generation=reservation.generation + 1)
    add_history(tx, reservation_id, "pass_reissued", actor)
    record_audit(
        tx, actor, "pass_reissued",
        reservation=reservation_id, date=reservation.date, table=reservation.table_name,
    )  # fmt: skip
    return get_reservation(tx, reservation_id)


def _get_open(tx: Transaction, reservation_id: str, seen: int) -> Reservation:
    reservation = get_as_seen(tx, reservation_id, seen)
    if reservation.status not in _OPEN:
        raise WrongState(state=reservation.status)
    return reservation


def check_amendment(amendment: Amendment) -> None:
    """Validate the fields as at creation; staff need no guest contact."""
    of_customer = amendment.customer_name, amendment.customer_email, amendment.customer_phone
    check_customer(*of_customer, prefix="customer_")
    if amendment.notes is not None and len(amendment.notes) > NOTES_MAX:
        raise field_invalid("notes", "at_most", longest=NOTES_MAX)


def cancel_by_guest(tx: Transaction, reservation_id: str, cancel_hours: int) -> Cancelled:
    """Cancel for a guest, as `cancel`. Idempotent.

    TooLateToCancel if the guests have checked in, or are expected within `cancel_hours`;
    WrongState if it was declined or is over.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status == "cancelled":
        return Cancelled(reservation, already=True)
    if not reservation.holds or reservation.status == "completed":
        raise WrongState(state=reservation.status)
    venue = get_venue(tx)
    zone = tx.zones.zone(venue.time_zone)
    deadline = cancel_deadline(reservation, tuple(list_slots(tx)), venue, zone, cancel_hours)
    if reservation.checked_in_at is not None or tx.now >= deadline:
        raise TooLateToCancel
    return cancel(tx, reservation_id, actor="guest")
