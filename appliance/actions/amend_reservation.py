"""Amend a reservation: what staff correct after it was granted (interface, section 3)."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from appliance.actions.as_seen import get_as_seen
from appliance.actions.note_security import note_security
from appliance.errors import (
    GuestsOutOfRange,
    TableNotFound,
    TableTaken,
    WrongState,
    field_invalid,
)
from appliance.model.booking import NOTES_MAX, check_customer, plain_phone
from appliance.model.guest_pass import LAST_GENERATION
from appliance.model.reservation import Reservation
from appliance.store.connection import Transaction
from appliance.store.reservations import (
    add_history,
    get_reservation,
    is_held,
    update_reservation,
)
from appliance.store.venue import find_table

_OPEN = ("requested", "pending", "partial", "confirmed")


@dataclass(frozen=True, slots=True)
class Amendment:
    """What a reservation should say; every field is told, changed or not."""

    guests: int
    customer_name: str
    customer_email: str | None
    customer_phone: str | None
    notes: str | None
    vip: bool = False


def amend_reservation(
    tx: Transaction, reservation_id: str, seen: int, amendment: Amendment, *, actor: str
) -> Reservation:
    """Change party, customer and notes. The pass in the guest's hands stays good.

    `seen` is the version that the author read: ChangedMeanwhile when it is not the present
    one. WrongState once it is over; refusals of the fields as at creation; GUESTS_OUT_OF_RANGE
    when more than the table seats or fewer than have arrived.
    """
    reservation = _get_open(tx, reservation_id, seen)
    check_amendment(amendment)
    table = find_table(tx, reservation.table_id)
    least = max(1, reservation.arrived)
    if table is not None and not least <= amendment.guests <= table.capacity_max:
        raise GuestsOutOfRange(field="guests", capacity_min=least, capacity_max=table.capacity_max)
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
    """Seat the party at another table of the same evening and slot; the pass stays good.

    Staff may use tables that partners cannot book. TableNotFound, TableTaken,
    GUESTS_OUT_OF_RANGE when it seats fewer, and as `amend_reservation`.
    """
    reservation = _get_open(tx, reservation_id, seen)
    table = find_table(tx, table_id)
    if table is None:
        raise TableNotFound
    if table.id == reservation.table_id:
        return reservation
    if reservation.guests > table.capacity_max:
        raise GuestsOutOfRange(
            field="guests", capacity_min=table.capacity_min, capacity_max=table.capacity_max
        )
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
    """Note that the party called to come late, or take that back."""
    reservation = _get_open(tx, reservation_id, seen)
    if (reservation.late_at is not None) != late:
        update_reservation(tx, reservation_id, late_at=tx.now if late else None)
        add_history(tx, reservation_id, "late" if late else "not_late", actor)
    return get_reservation(tx, reservation_id)


def reissue_pass(tx: Transaction, reservation_id: str, seen: int, *, actor: str) -> Reservation:
    """Give the guest a new pass, which their link shows by itself; every older one is `revoked`.

    The access code stays. WrongState once it is over, or when a pass has no number left.
    """
    reservation = _get_open(tx, reservation_id, seen)
    if reservation.generation >= LAST_GENERATION:
        raise WrongState(state=reservation.status)
    update_reservation(tx, reservation_id, generation=reservation.generation + 1)
    add_history(tx, reservation_id, "pass_reissued", actor)
    note_security(
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
    """The refusals of the fields, as at creation; staff need no contact of a guest."""
    of_customer = amendment.customer_name, amendment.customer_email, amendment.customer_phone
    check_customer(*of_customer, prefix="customer_")
    if amendment.notes is not None and len(amendment.notes) > NOTES_MAX:
        raise field_invalid("notes", "at_most", longest=NOTES_MAX)
