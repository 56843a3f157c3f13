"""Create reservations for partners, guests and staff (interface, sections 2.6, 3 and 4)."""

import hashlib
import json
from dataclasses import dataclass
from datetime import date
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from appliance.api_keys import ApiKey
from appliance.core.errors import (
    FormUsed,
    InvalidSlot,
    TableTaken,
)
from appliance.core.tokens import EnvironmentName
from appliance.database.connection import Reader, Transaction
from appliance.outbox import announce
from appliance.reservations.email_queue import email_guest, fails_in_test, notify_venue
from appliance.reservations.holds import check_place, take_hold
from appliance.reservations.model import Issued, Reservation, find_deadline
from appliance.reservations.request import Booking
from appliance.reservations.rows import (
    add_history,
    count_other_body,
    find_issued,
    get_reservation,
    insert_reservation,
    new_access_code,
    set_email_outcome,
)
from appliance.reservations.search import read_availability
from appliance.venue.model import (
    Slot,
    Table,
    find_slot,
    find_zone,
    get_venue,
    has_begun,
    link_expiry,
    list_slots,
    offered_slots,
)


def grant(
    tx: Transaction, booking: Booking,
    *, source: str, status: str, actor: str, over_capacity: bool = False, **columns: Any,
) -> Issued:  # fmt: skip
    """Insert a reservation and queue the event `reservation.created`.

    Return the reservation's id, its access code and when the guest's link expires. Raises the
    errors of `check_place`. `columns` contains values for other columns of `reservation` and
    `booking_request`.
    """
    place, is_by_staff = booking.place, source == "manual"
    starts, ends = check_place(tx, place, by_staff=is_by_staff, over_capacity=over_capacity)
    id_, expires_at = tx.new_id(), link_expiry(booking.date, find_zone(tx))
    access_code = new_access_code(tx)
    insert_reservation(
        tx,
        {"id": id_, "status": status, "source": source,
         "access_code": access_code, "issued_code": access_code,
         "table_id": booking.table_id,
         "table_ids": json.dumps(place.table_ids) if booking.more_table_ids else None,
         "date": booking.date.isoformat(), "slot": booking.slot,
         "starts": starts, "ends": ends, "guests": booking.guests,
         "customer_name": booking.customer_name or None, "customer_email": booking.customer_email,
         "customer_phone": booking.customer_phone, "notes": booking.notes,
         "expires_at": find_deadline(tx, status, booking.date, tx.now),
         "language": booking.language, "pass_id": tx.tokens.random_bytes(8),
         "link_expires_at": expires_at, "created_at": tx.now, "updated_at": tx.now, **columns},
    )  # fmt: skip
    add_history(tx, id_, "created", actor)
    announce(tx, "reservation.created", id_)
    return Issued(id_, access_code, expires_at)


SHOWN = 200  # maximum number of mismatches listed in the portal


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A reservation whose idempotency key was reused `times` times with a different body."""

    reservation_id: str
    lineage: str
    times: int
    idempotency_key: str | None
    date: str
    slot: str | None
    table: str
    created_at: int


def list_mismatches(reader: Reader) -> list[Mismatch]:
    """Return the latest reservations whose idempotency key was reused with another body."""
    sql = """SELECT r.id, q.lineage, q.body_mismatches, q.idempotency_key, r.date, r.slot,
                    t.number, r.created_at
             FROM booking_request q JOIN reservation r ON r.seq = q.reservation_seq
             JOIN venue_table t ON t.id = r.table_id
             WHERE q.body_mismatches > 0 AND q.lineage IS NOT NULL
             ORDER BY r.created_at DESC LIMIT :limit"""
    return [Mismatch(*row) for row in reader.rows(sql, {"limit": SHOWN})]


class Granted(Struct, frozen=True):
    """The outcome of a booking request.

    `email_id` is the id of the confirmation email, or None if there is none. The caller tries to
    send the email before responding, because the response says whether it was sent. If the request
    is a replay, `status` is the reservation's current status, and `other_body` is True if the body
    differs from the body of the first request.
    """

    issued: Issued
    replayed: bool
    email_id: str | None = None
    other_body: bool = False
    status: str = "confirmed"


def reserve(
    tx: Transaction, environment: EnvironmentName, key: ApiKey, booking: Booking
) -> Granted:
    """Create a partner's reservation.

    If the idempotency key was already used, return the first result. Raises the same errors as
    `grant`, and those of `take_hold` if it names a hold. If a request is refused, nothing is
    stored, so the partner may use the idempotency key for another request.
    """
    assert booking.idempotency_key is not None  # noqa: S101 - parse_booking requires it
    earlier = find_issued(tx, key.lineage, booking.idempotency_key)
    if earlier is not None:
        return _replay(tx, *earlier, booking)
    email_outcome = None  # not known until the mail server has responded
    if not booking.notify_customer or booking.customer_email is None:
        email_outcome = "skipped"
    elif environment == "test":
        # Nothing is sent in the test environment: the email is stored in its outbox.
        email_outcome = "failed" if fails_in_test(booking.customer_email) else "sent"
    if booking.hold_id is not None:
        take_hold(tx, key, booking.hold_id, booking.place)
    issued = grant(
        tx, booking, source="partner", status="confirmed", actor=f"key:{key.id}",
        external_ref=booking.external_ref, lineage=key.lineage,
        idempotency_key=booking.idempotency_key, request_hash=booking.fingerprint(),
        email_outcome=email_outcome,
    )  # fmt: skip
    email_id = None
    if email_outcome != "skipped":
        email_id = email_guest(tx, issued.reservation_id, "confirmation")
    return Granted(replace(issued, email_outcome=email_outcome), replayed=False, email_id=email_id)


def settle_email(tx: Transaction, issued: Issued, outcome: str) -> Issued:
    """Store the final value of `notifications.email`, and return `issued` with this value.

    Replays of the request then return the same value.
    """
    set_email_outcome(tx, issued.reservation_id, outcome)
    return replace(issued, email_outcome=outcome)


def _replay(
    tx: Transaction, earlier: Issued, request_hash: bytes | None, booking: Booking
) -> Granted:
    made = get_reservation(tx, earlier.reservation_id)
    if request_hash is None:  # the guest's data was erased, so compare with what is booked now
        other_body = (booking.date.isoformat(), booking.slot) != (made.date, made.slot)
    else:
        other_body = request_hash != booking.fingerprint()
    if other_body:
        count_other_body(tx, earlier.reservation_id)
    if earlier.email_outcome is None:  # the box was stopped between the commit and the response
        earlier = settle_email(tx, earlier, "failed")
    return Granted(earlier, replayed=True, other_body=other_body, status=made.status)


_GUEST_LINEAGE = "guest"  # used for all booking forms; each form has its own idempotency key
_EMAIL_KINDS = {"confirmed": "confirmation", "requested": "requested", "pending": "payment_due"}
_VENUE_KINDS = {"requested": "house_request", "pending": "house_payment"}


def enter_for_guest(
    tx: Transaction, booking: Booking, *, notify: bool = False, request_hash: bytes | None = None
) -> Reservation:
    """Create a reservation with the source `platform`, and email the guest if `notify` is True.

    Its status depends on the venue:

    - If reservations are prepaid, it is pending until staff record the payment.
    - If they are free and `autoConfirm` is on, it is confirmed.
    - If they are free and `autoConfirm` is off, it is requested, and expires after
      `requestExpiryHours`, or when its evening ends if that is earlier.

    If the guest chose no table, `request_hash` must be the hash of the booking as it was before a
    table was assigned. Raises the same errors as `grant`.
    """
    venue = get_venue(tx)
    if venue.slots_only and not booking.slot and offered_slots(list_slots(tx), booking.date):
        raise InvalidSlot(field="slot")
    if venue.reservation_mode == "prepaid":
        status = "pending"
    else:
        status = "confirmed" if venue.auto_confirm else "requested"
    issued = grant(
        tx, booking, source="platform", status=status, actor="guest",
        lineage=_GUEST_LINEAGE if booking.idempotency_key is not None else None,
        idempotency_key=booking.idempotency_key, request_hash=request_hash or booking.fingerprint(),
    )  # fmt: skip
    if notify:
        email_guest(tx, issued.reservation_id, _EMAIL_KINDS[status], by_guest=True)
    if status in _VENUE_KINDS:
        notify_venue(tx, issued.reservation_id, _VENUE_KINDS[status])
    return get_reservation(tx, issued.reservation_id)


def enter_by_staff(
    tx: Transaction, booking: Booking,
    *, actor: str, notify: bool = False, vip: bool = False, over_capacity: bool = False,
    walk_in: bool = False, prepaid: bool = False,
) -> Reservation:  # fmt: skip
    """Create a reservation with the source `manual`. Email the guest if `notify` is True.

    It is confirmed, or if `prepaid` is True, pending until staff record the payment.
    Idempotent for each actor and `idempotency_key`, which is the form's id. Raises the same errors
    as `grant`. Also raises FormUsed if the form was already submitted with different content, or if
    its reservation no longer holds a table.
    """
    ticks = repr((notify, vip, prepaid)).encode()
    request_hash = hashlib.sha256(booking.fingerprint() + ticks).digest()
    earlier = _find_by_form(tx, actor, booking.idempotency_key, request_hash)
    if earlier is not None:
        return earlier
    status = "pending" if prepaid else "confirmed"
    issued = grant(
        tx, booking, source="manual", status=status, actor=actor, vip=int(vip),
        walk_in=int(walk_in), over_capacity=over_capacity,
        lineage=actor if booking.idempotency_key is not None else None,
        idempotency_key=booking.idempotency_key, request_hash=request_hash,
    )  # fmt: skip
    if notify:
        email_guest(tx, issued.reservation_id, _EMAIL_KINDS[status])
    return get_reservation(tx, issued.reservation_id)


def _find_by_form(
    tx: Transaction, lineage: str, form_id: str | None, request_hash: bytes
) -> Reservation | None:
    """Return the reservation that this form created, or None if it was not submitted before.

    Raises FormUsed if the form was already submitted with different content. Also raises FormUsed
    if the reservation no longer holds a table, because the user then wants a new reservation.
    """
    earlier = find_issued(tx, lineage, form_id) if form_id is not None else None
    if earlier is None:
        return None
    issued, first_hash = earlier
    made = get_reservation(tx, issued.reservation_id)
    # If the guest's data was erased, there is no hash to compare with.
    if not made.holds or (first_hash is not None and first_hash != request_hash):
        raise FormUsed
    return made


ANY_TABLE = ""  # a booking's table id if the guest chose no table


def book(tx: Transaction, booking: Booking) -> Reservation:
    """Create a guest's reservation from the booking page, and email the guest.

    Idempotent for each `idempotency_key`, which is the form's id. If the guest chose no table, the
    best free table is used. Raises the same errors as `grant`. Also raises TableTaken if no table
    is left, InvalidSlot if the slot has begun, and FormUsed if the form was already submitted with
    different content or its reservation no longer holds a table.
    """
    request_hash = booking.fingerprint()
    earlier = _find_by_form(tx, _GUEST_LINEAGE, booking.idempotency_key, request_hash)
    if earlier is not None:
        return earlier
    venue, slots = get_venue(tx), list_slots(tx)
    slot = find_slot(slots, booking.slot, booking.date) if booking.slot else None
    zone = tx.zones.zone(venue.time_zone)
    if has_begun(slot, slots, booking.date, venue, zone, tx.now):
        raise InvalidSlot(field="slot")
    if booking.table_id == ANY_TABLE:
        fitting = list_fitting(tx, booking.date, slot, booking.guests)
        if not fitting:
            raise TableTaken
        booking = replace(booking, table_id=fitting[0].id)
    return enter_for_guest(tx, booking, notify=True, request_hash=request_hash)


def list_fitting(reader: Reader, day: date, slot: Slot | None, guests: int) -> list[Table]:
    """Return the free tables that fit the party, the best one first.

    It has the lowest capacity and, of several such tables, the lowest minimum spend. Tables with
    the same of both stay in the order of the table list.
    """
    found = read_availability(reader, day, slot)
    free = [entry.table for entry in found if entry.available and entry.table.seats(guests)]
    return sorted(free, key=lambda table: (table.capacity_max, table.minimum_spend))
