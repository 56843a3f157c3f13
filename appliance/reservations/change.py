"""Change a reservation: amend, move, accept, decline or cancel (interface, section 3)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from appliance.api_keys import ApiKey
from appliance.core.errors import (
    ChangedMeanwhile,
    ChangedSince,
    FewerThanArrived,
    GuestsOutOfRange,
    NotChangeable,
    NotFound,
    WrongState,
    check_length,
)
from appliance.database.connection import Transaction
from appliance.outbox import announce
from appliance.reservations.email_queue import email_guest, notify_venue
from appliance.reservations.holds import (
    Place,
    check_place,
    free_tables,
    hold_tables,
)
from appliance.reservations.model import (
    FREEING_STATUSES,
    LAST_GENERATION,
    OPEN_STATUSES,
    Reservation,
    find_deadline,
)
from appliance.reservations.request import (
    NOTES_MAX,
    ChangeRequest,
    check_customer,
    check_different,
)
from appliance.reservations.rows import (
    add_history,
    get_reservation,
    new_access_code,
    update_reservation,
)
from appliance.staff.audit_log import record_audit
from appliance.venue.model import check_seats, find_zone, get_table, link_expiry

P = ParamSpec("P")
R = TypeVar("R")


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


def decline(
    tx: Transaction, reservation_id: str,
    *, actor: str, notify: bool = True, words: str | None = None,
) -> Reservation:  # fmt: skip
    """Decline a request: free the table, and notify the webhook endpoints.

    If `notify` is True, the guest gets an email, which quotes `words`, a line from the venue.
    Raises WrongState unless the reservation's status is `requested`.
    """
    return _settle_request(
        tx, reservation_id, "declined", "declined", actor, notify=notify, words=words
    )


def _settle_request(
    tx: Transaction, reservation_id: str, status: str, what: str, actor: str,
    *, notify: bool = True, words: str | None = None,
) -> Reservation:  # fmt: skip
    reservation = get_reservation(tx, reservation_id)
    if reservation.status != "requested":
        raise WrongState(state=reservation.status)
    update_reservation(tx, reservation_id, status=status)
    if status in FREEING_STATUSES:
        free_tables(tx, reservation)
    add_history(tx, reservation_id, what, actor)
    announce(tx, f"reservation.{status}", reservation_id)
    if notify:
        email_guest(tx, reservation_id, what, words=words)
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


def cancel(
    tx: Transaction, reservation_id: str,
    *, actor: str, notify: bool = True, words: str | None = None,
) -> Cancelled:  # fmt: skip
    """Cancel a reservation that holds its table. Idempotent. `checkedInAt` does not change.

    If `notify` is True, the guest gets an email, unless a rule in `email_guest` prevents it. It
    quotes `words`, a line from the venue. Raises NotFound if the id is unknown, and WrongState if
    the reservation is declined.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status == "cancelled":
        return Cancelled(reservation, already=True)
    if reservation.status == "declined":
        raise WrongState(state=reservation.status)
    by = {"key": "partner", "guest": "guest"}.get(actor.partition(":")[0], "venue")
    update_reservation(tx, reservation_id, status="cancelled", cancelled_at=tx.now, cancelled_by=by)
    free_tables(tx, reservation)
    add_history(tx, reservation_id, "cancelled", actor)
    announce(tx, "reservation.cancelled", reservation_id)
    if notify:
        email_guest(
            tx, reservation_id, "cancelled", by_guest=actor == "guest", words=words
        )  # fmt: skip
    if by != "venue":
        notify_venue(tx, reservation_id, "house_cancelled")
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

    Raises the errors of `check_amendment` and `change_reservation`.
    """
    _get_open(tx, reservation_id)
    check_amendment(amendment)
    return change_reservation(
        tx, reservation_id, asdict(amendment), actor=actor, over_capacity=over_capacity
    ).reservation


def move_to_table(
    tx: Transaction, reservation_id: str, table_id: str, *, actor: str, over_capacity: bool = False
) -> Reservation:
    """Move the party to another table for the same evening and slot. A group leaves its first one.

    The new table may be unbookable. Raises the errors of `change_reservation`.
    """
    tables = (table_id, *get_reservation(tx, reservation_id).table_ids[1:])
    try:
        return change_reservation(
            tx, reservation_id, {"table_ids": tables}, actor=actor, over_capacity=over_capacity
        ).reservation
    except GuestsOutOfRange as refusal:
        refusal.field = "table"
        raise


@dataclass(frozen=True, slots=True)
class Changed:
    """A changed reservation. `email_id` is the id of the email about it, or None if there is none.

    If a partner's request is a replay, `other_body` is True if its body differs from the first.
    """

    reservation: Reservation
    email_id: str | None = None
    replayed: bool = False
    other_body: bool = False


def change_reservation(
    tx: Transaction, reservation_id: str, wanted: Mapping[str, Any],
    *, actor: str, by_staff: bool = True, over_capacity: bool = False, notify: bool | None = False,
) -> Changed:  # fmt: skip
    """Change a reservation's place, guests and customer. Code, links and pass stay valid.

    `wanted` has new values for any of `date` (a date), `slot` (None for the whole evening),
    `table_ids` (all tables, the first one first), `guests`, `customer_name`, `customer_email`,
    `customer_phone`, `language`, `notes`, `external_ref` and `vip`. The caller has validated them.
    The event `reservation.updated` is queued and, unless `notify` is False, an email to the guest
    if it concerns them; True also writes to a guest whom the partner did not want to be written to.

    The new tables are held in the transaction that frees the old ones. Raises NotFound if the id is
    unknown, WrongState if the reservation is cancelled, declined or completed, FewerThanArrived if
    fewer guests are wanted than have arrived, and the errors of `check_place`. If only the number
    of guests changes, only the capacity is checked.
    """
    reservation, values = _get_open(tx, reservation_id), dict(wanted)
    held = Place(
        reservation.table_ids, date.fromisoformat(reservation.date), reservation.slot,
        reservation.guests,
    )  # fmt: skip
    place = replace(
        held, table_ids=tuple(values.pop("table_ids", held.table_ids)),
        date=values.pop("date", held.date), slot=values.get("slot", held.slot),
        guests=values.get("guests", held.guests),
    )  # fmt: skip
    if place.guests < reservation.arrived:
        raise FewerThanArrived(field="guests", arrived=reservation.arrived)
    values.pop("slot", None)
    changed = {name: value for name, value in values.items() if getattr(reservation, name) != value}
    moved: dict[str, Any] = {}
    if replace(place, guests=held.guests) != held:
        moved = _move(
            tx, reservation, place, by_staff=by_staff, over_capacity=over_capacity, actor=actor
        )
    elif "guests" in changed and not over_capacity:
        tables = [get_table(tx, id_) for id_ in reservation.table_ids]
        check_seats(tables, place.guests, "guests")
    if not (changed or moved):
        return Changed(reservation)
    update_reservation(tx, reservation_id, **changed, **moved)
    if changed:
        detail: dict[str, Any] = {"changed": sorted(changed)}
        if "guests" in changed:
            detail["guests"] = [reservation.guests, place.guests]
        add_history(tx, reservation_id, "amended", actor, **detail)
    announce(tx, "reservation.updated", reservation_id)
    email_id = None
    if notify is not False and (moved or {"guests", "customer_email"} & set(changed)):
        email_id = email_guest(
            tx, reservation_id, "changed", by_guest=actor == "guest", asked=notify is True
        )
    return Changed(get_reservation(tx, reservation_id), email_id)


def _move(
    tx: Transaction, reservation: Reservation, place: Place,
    *, by_staff: bool, over_capacity: bool, actor: str,
) -> dict[str, Any]:  # fmt: skip
    """Hold the new tables instead of the old ones. Return the columns that change."""
    hours = check_place(
        tx, place, by_staff=by_staff, over_capacity=over_capacity, own=reservation
    )  # fmt: skip
    day, tables = place.date.isoformat(), place.table_ids
    free_tables(tx, reservation)
    hold_tables(tx, tables, day, hours, reservation.source, seq=reservation.seq)
    columns: dict[str, Any] = {
        "slot": place.slot, "starts": hours[0], "ends": hours[1], "table_id": tables[0],
        "table_ids": json.dumps(tables) if len(tables) > 1 else None,
    }  # fmt: skip
    if (day, place.slot) != (reservation.date, reservation.slot):
        columns["late_at"] = None  # the guest announced the delay for the old time
        before, after = (
            f"{one.date} {one.slot or ''}".strip() for one in (reservation, place)
        )  # fmt: skip
        add_history(tx, reservation.id, "moved", actor, **{"from": before, "to": after})
    if tables != reservation.table_ids:
        after = ", ".join(get_table(tx, id_).number for id_ in tables)
        names = {"from": reservation.table_number, "to": after}
        add_history(tx, reservation.id, "moved", actor, **names)
    if day == reservation.date:
        return columns
    if reservation.expires_at is not None:  # it was at most the end of the old evening
        columns["expires_at"] = find_deadline(
            tx, reservation.status, place.date, reservation.created_at, reservation.expires_at
        )
    return columns | {"date": day, "link_expires_at": link_expiry(place.date, find_zone(tx))}


def change_own(
    tx: Transaction, key: ApiKey, reservation_id: str, request: ChangeRequest,
    if_updated_at: int | None = None,
) -> Changed:  # fmt: skip
    """Change a reservation at the partner's request, like `change_reservation`.

    If the idempotency key was already used for this reservation, change nothing. Raises NotFound if
    the reservation was created with a key of a different lineage, NotChangeable if it is closed or
    its guest has arrived, and ChangedSince if it changed since `if_updated_at` (ms since 1970).
    """
    reservation, wanted = get_reservation(tx, reservation_id), dict(request.wanted)
    if reservation.lineage != key.lineage:
        raise NotFound
    sql = """SELECT request_hash, email_id FROM change_request
             WHERE reservation_seq = :seq AND idempotency_key = :key"""
    earlier = tx.row(sql, {"seq": reservation.seq, "key": request.idempotency_key})
    if earlier is not None:
        other = earlier[0] not in {None, request.fingerprint()}
        return Changed(reservation, earlier[1], replayed=True, other_body=other)
    if reservation.status not in OPEN_STATUSES or reservation.checked_in_at is not None:
        raise NotChangeable
    if if_updated_at not in {None, reservation.updated_at}:
        raise ChangedSince
    first = wanted.pop("table_id", reservation.table_id)
    tables = (first, *wanted.pop("more_table_ids", reservation.table_ids[1:]))
    check_different(tables)
    changed = change_reservation(
        tx, reservation_id, {**wanted, "table_ids": tables}, actor=f"key:{key.id}",
        by_staff=False, notify=request.notify,
    )  # fmt: skip
    tx.insert(
        "change_request",
        {"reservation_seq": reservation.seq, "idempotency_key": request.idempotency_key,
         "request_hash": request.fingerprint(), "email_id": changed.email_id},
    )  # fmt: skip
    return changed


_PASS_KINDS = {"confirmed": "confirmation", "requested": "requested"}


def send_pass(tx: Transaction, reservation_id: str, email: str, *, actor: str) -> Reservation:
    """Email the guest their pass, to `email`, which becomes the reservation's address.

    Until the reservation is confirmed, the email gives the balance due. Raises the errors of
    `change_reservation`.
    """
    wanted = {"customer_email": email}
    reservation = change_reservation(tx, reservation_id, wanted, actor=actor).reservation
    email_guest(tx, reservation_id, _PASS_KINDS.get(reservation.status, "payment_due"), asked=True)
    update_reservation(tx, reservation_id)
    add_history(tx, reservation_id, "pass_sent", actor)
    return get_reservation(tx, reservation_id)


def mark_late(tx: Transaction, reservation_id: str, *, late: bool, actor: str) -> Reservation:
    """Record and announce that the party will be late or, if `late` is False, that it will not.

    Raises NotFound and WrongState in the same cases as `amend_reservation`.
    """
    reservation = _get_open(tx, reservation_id)
    if (reservation.late_at is not None) != late:
        update_reservation(tx, reservation_id, late_at=tx.now if late else None)
        add_history(tx, reservation_id, "late" if late else "not_late", actor)
        announce(tx, "reservation.updated", reservation_id)
    return get_reservation(tx, reservation_id)


def reissue_pass(
    tx: Transaction, reservation_id: str, *, keep_code: bool = False, actor: str
) -> Reservation:
    """Issue a new guest pass, new links and, unless `keep_code`, a new access code.

    The door answers `revoked` to the old ones, and browsers that stored the reservation lose it.
    The guest gets an email, and partners the event `reservation.updated`. Raises NotFound and
    WrongState in the same cases as `amend_reservation`, WrongState if the pass already has the last
    generation number, and Unavailable if no access code is free.
    """
    reservation = _get_open(tx, reservation_id)
    if reservation.generation >= LAST_GENERATION:
        raise WrongState(state=reservation.status)
    codes = {} if keep_code else {
        "access_code": new_access_code(tx),
        "replaced_codes": json.dumps([*reservation.old_codes, reservation.access_code]),
    }  # fmt: skip
    update_reservation(
        tx, reservation_id, generation=reservation.generation + 1,
        link_generation=reservation.link_generation + 1, **codes,
    )  # fmt: skip
    tx.execute("DELETE FROM claim WHERE reservation_id = :id", {"id": reservation_id})
    add_history(tx, reservation_id, "pass_reissued", actor)
    announce(tx, "reservation.updated", reservation_id)
    email_guest(tx, reservation_id, _PASS_KINDS.get(reservation.status, "payment_due"))
    record_audit(
        tx, actor, "pass_reissued",
        reservation=reservation_id, date=reservation.date, table=reservation.table_name,
    )  # fmt: skip
    return get_reservation(tx, reservation_id)
