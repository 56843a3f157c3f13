"""Book: what a guest asks for on the booking page, at the best table or at the one they chose."""

from collections.abc import Iterable
from dataclasses import replace

from appliance.actions.enter import GUEST_LINE, enter_for_guest, find_made
from appliance.errors import InvalidSlot, TableTaken
from appliance.model.availability import find_availability
from appliance.model.booking import Booking
from appliance.model.evening import find_slot
from appliance.model.guest_terms import has_begun, wanted_interval
from appliance.model.reservation import Reservation
from appliance.model.venue import Slot, Table, Venue
from appliance.store.connection import Reader, Transaction
from appliance.store.reservations import list_holds
from appliance.store.venue import get_venue, list_closings, list_slots, list_tables

ANY_TABLE = ""  # the table of a booking that leaves it to the house


def book(tx: Transaction, booking: Booking) -> Reservation:
    """Enter the guest's booking and write to them; a form sent twice books once.

    The house chooses among the free tables when the guest did not. Refusals are those of
    `grant`; TableTaken too when no table is left, InvalidSlot for a slot that has begun, and
    FormUsed when the form comes again with something else in it.
    """
    assert booking.idempotency_key is not None  # noqa: S101 - every form has its own
    wished = booking.fingerprint()
    earlier = find_made(tx, GUEST_LINE, booking.idempotency_key, wished)
    if earlier is not None:
        return earlier
    venue, slots = get_venue(tx), list_slots(tx)
    slot = find_slot(slots, booking.slot, booking.date) if booking.slot else None
    zone = tx.zones.zone(venue.time_zone)
    if has_begun(slot, slots, booking.date, venue, zone, tx.now):
        raise InvalidSlot(field="slot")
    if booking.table_id == ANY_TABLE:
        free = free_tables(tx, venue, booking, slot)
        if not free:
            raise TableTaken
        booking = replace(booking, table_id=best_table(free).id)
    return enter_for_guest(tx, booking, writes=True, request_hash=wished)


def free_tables(reader: Reader, venue: Venue, booking: Booking, slot: Slot | None) -> list[Table]:
    """The tables that could seat this booking's party then, in the venue's order."""
    day = booking.date.isoformat()
    closed = any(closing.holds(day) for closing in list_closings(reader))
    wanted = wanted_interval(slot, venue)
    found = find_availability(list_tables(reader), list_holds(reader, day), wanted, closed=closed)
    return [
        one.table
        for one in found
        if one.available and one.table.capacity_min <= booking.guests <= one.table.capacity_max
    ]


def best_table(free: Iterable[Table]) -> Table:
    """The smallest one that seats the party, then the least to spend, then the venue's order."""
    return min(free, key=lambda table: (table.capacity_max, table.minimum_spend))
