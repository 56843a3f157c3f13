"""Grant: turn a booking into a reservation that holds its table, whoever asked for it."""

from typing import Any

from appliance.actions.announce import announce
from appliance.errors import (
    DateOutOfRange,
    GuestsOutOfRange,
    InvalidSlot,
    SlotEnded,
    TableNotBookable,
    TableNotFound,
    TableTaken,
    Unavailable,
)
from appliance.model.availability import find_closure
from appliance.model.booking import Booking, plain_phone
from appliance.model.evening import find_slot, interval, link_expiry, may_be_booked, tonight
from appliance.model.guest_terms import has_ended
from appliance.model.reservation import Issued
from appliance.model.venue import Slot, Table
from appliance.store.connection import Transaction
from appliance.store.reservations import add_history, insert_reservation, is_held
from appliance.store.venue import find_table, get_venue, list_closings, list_slots

_CODE_TRIES = 64


def grant(
    tx: Transaction, booking: Booking, *, source: str, status: str, actor: str, **columns: Any
) -> Issued:
    """Insert the reservation and announce `reservation.created`; what it was issued.

    Refusals in this order: venue active and open that evening, table exists,
    bookable, guests in range, slot offered on that weekday, date not past, slot not over, table
    free. Staff may write down a slot that is over.
    """
    venue, day = get_venue(tx), booking.date.isoformat()
    closure = find_closure(venue, list_closings(tx), day)
    if closure is not None:
        raise closure
    _check_table(find_table(tx, booking.table_id), booking.guests)
    slot = _find_slot(tx, booking)
    starts, ends = interval(slot, venue.evening_ends_at)
    zone = tx.zones.zone(venue.time_zone)
    if not may_be_booked(booking.date, tonight(tx.now, zone, venue.evening_ends_at)):
        raise DateOutOfRange(field="date")
    if source != "manual" and has_ended(slot, booking.date, venue, zone, tx.now):
        raise SlotEnded(field="slot")
    if is_held(tx, booking.table_id, day, starts, ends):
        raise TableTaken
    issued = Issued(tx.new_id(), _fresh_code(tx), link_expiry(booking.date, zone))
    insert_reservation(
        tx,
        {"id": issued.reservation_id, "status": status, "source": source,
         "table_id": booking.table_id, "date": day, "slot": booking.slot,
         "starts": starts, "ends": ends, "guests": booking.guests,
         "customer_name": booking.customer_name, "customer_email": booking.customer_email,
         "customer_phone": plain_phone(booking.customer_phone), "notes": booking.notes,
         "language": booking.language, "pass_id": tx.tokens.random_bytes(8),
         "access_code": issued.access_code, "issued_code": issued.access_code,
         "link_expires_at": issued.link_expires_at,
         "created_at": tx.now, "updated_at": tx.now, **columns},
    )  # fmt: skip
    add_history(tx, issued.reservation_id, "created", actor)
    announce(tx, "reservation.created", issued.reservation_id)
    return issued


def _check_table(table: Table | None, guests: int) -> None:
    if table is None:
        raise TableNotFound
    if not table.bookable:
        raise TableNotBookable
    if not table.capacity_min <= guests <= table.capacity_max:
        raise GuestsOutOfRange(
            field="guests", capacity_min=table.capacity_min, capacity_max=table.capacity_max
        )


def _find_slot(tx: Transaction, booking: Booking) -> Slot | None:
    if booking.slot is None:
        return None
    slot = find_slot(list_slots(tx, booking.slot), booking.slot, booking.date)
    if slot is None:
        raise InvalidSlot(field="slot")
    return slot


def _fresh_code(tx: Transaction) -> str:
    """A code that no stored reservation has; Unavailable when they have all but run out."""
    sql = "SELECT 1 FROM reservation WHERE access_code = :code"
    for _ in range(_CODE_TRIES):
        code = tx.tokens.new_access_code()
        if tx.row(sql, {"code": code}) is None:
            return code
    raise Unavailable
