"""`GET /v1/venue` and `GET /v1/availability` (interface, sections 2.1 to 2.4)."""

from datetime import date

from aiohttp import web

from appliance.core.errors import DateOutOfRange, InvalidDate, InvalidSlot
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT, answer
from appliance.reservations.search import read_availability
from appliance.venue.model import (
    find_tonight,
    find_zone,
    get_offered_slot,
    get_venue,
    has_ended,
    is_slot,
    list_slots,
    list_tables,
    may_be_booked,
    parse_date,
)
from web.api.schemas import (
    Availability,
    Slot,
    Table,
    TableAvailability,
    Venue,
    VenueIdentity,
    read_query,
)


async def show_venue(request: web.Request) -> web.Response:
    """Return the venue with its tables and slots."""
    return answer(request[ENVIRONMENT].database.peek(_read_venue))


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
    return answer(request[ENVIRONMENT].database.peek(_read_availability, day, start))


def _read_venue(reader: Reader) -> Venue:
    venue = get_venue(reader)
    return Venue.of(
        venue,
        venue=VenueIdentity.of(venue),
        tables=[Table.of(table) for table in list_tables(reader)],
        slots=[Slot.of(slot) for slot in list_slots(reader)],
        evening_ends=venue.evening_ends_at,
        tonight=find_tonight(reader).isoformat(),
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
