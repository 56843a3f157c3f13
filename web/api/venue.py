"""`GET /v1/venue` and `GET /v1/availability` (interface, sections 2.1 to 2.4)."""

import re
from datetime import date, datetime, timedelta

from aiohttp import web

from appliance.clock import format_instant
from appliance.core.errors import (
    DateOutOfRange,
    InvalidDate,
    InvalidGuests,
    InvalidSlot,
    RangeTooLong,
)
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT, answer, answer_unless_known
from appliance.reservations.search import find_free, read_availability
from appliance.venue.model import (
    BOOKING_HORIZON_DAYS,
    find_tonight,
    find_zone,
    get_offered_slot,
    get_venue,
    has_ended,
    is_slot,
    list_closings,
    list_slots,
    list_tables,
    may_be_booked,
    parse_date,
)
from web.api.authentication import KEY
from web.api.schemas import (
    Availability,
    AvailabilityRange,
    FreeDay,
    FreeSlot,
    Key,
    Slot,
    Table,
    TableAvailability,
    Venue,
    VenueIdentity,
    VenueName,
    read_query,
)

RANGE_DAYS_MAX = 62
_GUESTS = re.compile(r"[0-9]{1,4}")


async def show_venue(request: web.Request) -> web.Response:
    """Return the venue with its tables and slots."""
    return answer_unless_known(request, request[ENVIRONMENT].database.peek(_read_venue))


async def show_key(request: web.Request) -> web.Response:
    """Return the description of the calling key."""
    environment, key = request[ENVIRONMENT], request[KEY]
    venue = environment.database.peek(get_venue)
    return answer(
        Key.of(
            key,
            environment=environment.name,
            venue=VenueName.of(venue),
            created_at=format_instant(key.created_at),
        )
    )


async def show_range(request: web.Request) -> web.Response:
    """Return which tables are free in each slot of up to 62 evenings.

    Raises InvalidDateRange or InvalidGuests if a parameter is invalid, and ValidationError if one
    is unknown.
    """
    query = read_query(request, ("from", "to", "guests"))
    first, last = parse_date(query.get("from")), parse_date(query.get("to"))
    if first is None:
        raise InvalidDate(field="from")
    if last is None:
        raise InvalidDate(field="to")
    if not 0 <= (last - first).days < RANGE_DAYS_MAX:
        raise RangeTooLong(field="to", largest=RANGE_DAYS_MAX)
    guests = query.get("guests")
    if guests is not None and not (_GUESTS.fullmatch(guests) and int(guests)):
        raise InvalidGuests(field="guests")
    found = await request[ENVIRONMENT].database.read(
        find_free, first, last, int(guests) if guests else None
    )
    days = [
        FreeDay(each.date, each.closed, [FreeSlot(*slot) for slot in each.slots]) for each in found
    ]
    return answer_unless_known(
        request, AvailabilityRange(first.isoformat(), last.isoformat(), days)
    )


async def show_availability(request: web.Request) -> web.Response:
    """Return whether each table is free on a date or in a slot. Does not reserve a table.

    Raises InvalidDate, DateOutOfRange or InvalidSlot if a parameter is invalid, and
    ValidationError if a parameter is unknown.
    """
    query = read_query(request, ("date", "slot"))
    day, start = parse_date(query.get("date")), query.get("slot")
    if day is None:
        raise InvalidDate(field="date")
    if start is not None and not is_slot(start):
        raise InvalidSlot(field="slot")
    found = request[ENVIRONMENT].database.peek(_read_availability, day, start)
    return answer_unless_known(request, found)


def _read_venue(reader: Reader) -> Venue:
    venue, tonight, zone = get_venue(reader), find_tonight(reader), find_zone(reader)
    last = tonight + timedelta(BOOKING_HORIZON_DAYS)
    days = (date.isoformat(tonight + timedelta(n)) for n in range(BOOKING_HORIZON_DAYS + 1))
    closings = list_closings(reader)
    return Venue.of(
        venue,
        venue=VenueIdentity.of(venue),
        tables=[Table.of(table) for table in list_tables(reader)],
        slots=[Slot.of(slot) for slot in list_slots(reader)],
        evening_ends=venue.evening_ends_at,
        tonight=tonight.isoformat(),
        utc_offset=datetime.fromtimestamp(reader.now / 1000, zone).isoformat()[-6:],
        closed_dates=[day for day in days if any(each.holds(day) for each in closings)],
        bookable_until=last.isoformat(),
    )


def _read_availability(reader: Reader, day: date, start: str | None) -> Availability:
    venue, slot = get_venue(reader), None
    if not may_be_booked(day, find_tonight(reader)):
        raise DateOutOfRange(field="date")
    if start is not None:
        slot = get_offered_slot(reader, start, day)
    closed = venue.status != "active"
    closed |= has_ended(slot, day, venue, find_zone(reader), reader.now)
    found = read_availability(reader, day, slot, closed=closed)
    tables = [TableAvailability.of(each, id=each.table.id, name=each.table.name) for each in found]
    return Availability(date=day.isoformat(), slot=start, tables=tables)
