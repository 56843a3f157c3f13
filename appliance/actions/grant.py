"""Grant: turn a booking into a reservation that holds its table, whoever asked for it."""

from datetime import date
from typing import Any

from appliance.actions.announce import announce
from appliance.clock import ZoneDatabase
from appliance.errors import (
    GuestsOutOfRange,
    InvalidDate,
    InvalidSlot,
    TableNotBookable,
    TableNotFound,
    TableTaken,
    Unavailable,
    VenueInactive,
)
from appliance.model.booking import Booking
from appliance.model.evening import (
    find_slot,
    interval,
    link_expiry,
    may_be_booked,
    tonight,
)
from appliance.model.venue import Table, Venue
from appliance.store.connection import Transaction
from appliance.store.reservations import (
    add_history,
    code_is_in_use,
    insert_reservation,
    is_held,
)
from appliance.store.venue import find_table, get_venue, list_slots

_CODE_TRIES = 64


def grant(
    tx: Transaction, booking: Booking, *, source: str, status: str, actor: str, **columns: Any
) -> str:
    """Insert the reservation and announce `reservation.created`; its id.

    Refusals in the order of decisions.md: venue active, table exists, bookable, guests in
    range, slot offered on that weekday, date not past, table free.
    """
    venue = tx.recall(get_venue)
    if venue.status != "active":
        raise VenueInactive
    _check_table(tx.recall(find_table, booking.table_id), booking.guests)
    starts, ends = _interval(tx, venue, booking)
    zone = tx.zones.zone(venue.time_zone)
    _check_date(tx.zones, venue, booking.date, tx.now)
    day = booking.date.isoformat()
    if is_held(tx, booking.table_id, day, starts, ends):
        raise TableTaken
    reservation_id, code = tx.new_id(), _fresh_code(tx)
    insert_reservation(
        tx,
        {
            "id": reservation_id,
            "status": status,
            "source": source,
            "table_id": booking.table_id,
            "date": day,
            "slot": booking.slot,
            "starts": starts,
            "ends": ends,
            "guests": booking.guests,
            "customer_name": booking.customer_name,
            "customer_email": booking.customer_email,
            "customer_phone": booking.customer_phone,
            "notes": booking.notes,
            "language": booking.language,
            "access_code": code,
            "issued_code": code,
            "pass_id": tx.tokens.random_bytes(8),
            "link_expires_at": link_expiry(booking.date, zone),
            "created_at": tx.now,
            "updated_at": tx.now,
            **columns,
        },
    )
    add_history(tx, reservation_id, "created", actor)
    announce(tx, "reservation.created", reservation_id)
    return reservation_id


def _check_table(table: Table | None, guests: int) -> None:
    if table is None:
        raise TableNotFound
    if not table.bookable:
        raise TableNotBookable
    if not table.capacity_min <= guests <= table.capacity_max:
        raise GuestsOutOfRange(
            field="guests", capacity_min=table.capacity_min, capacity_max=table.capacity_max
        )


def _interval(tx: Transaction, venue: Venue, booking: Booking) -> tuple[int, int]:
    slot = None
    if booking.slot is not None:
        slot = find_slot(tx.recall(list_slots), booking.slot, booking.date)
        if slot is None:
            raise InvalidSlot(field="slot")
    return interval(slot, venue.evening_ends_at)


def _check_date(zones: ZoneDatabase, venue: Venue, day: date, now: int) -> None:
    tonight_is = tonight(now, zones.zone(venue.time_zone), venue.evening_ends_at)
    if not may_be_booked(day, tonight_is):
        raise InvalidDate(field="date")


def _fresh_code(tx: Transaction) -> str:
    """A code that no stored reservation has; Unavailable when they have all but run out."""
    for _ in range(_CODE_TRIES):
        code = tx.tokens.new_access_code()
        if not code_is_in_use(tx, code):
            return code
    raise Unavailable
