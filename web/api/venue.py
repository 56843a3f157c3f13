"""`GET /v1/venue` and `GET /v1/availability` (interface, sections 2.1 to 2.4)."""

from datetime import date

from aiohttp import web

from appliance.core.errors import DateOutOfRange, InvalidSlot
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT, answer
from appliance.reservations.availability import TableAvailability, find_availability, find_closure
from appliance.reservations.guest_terms import has_ended
from appliance.reservations.rows import list_holds
from appliance.venue.model import Slot, Table, Venue, find_slot, interval, may_be_booked, tonight
from appliance.venue.rows import get_venue, list_closings, list_slots, list_tables
from web.api.query import read_availability_query
from web.api.wire import availability_answer, venue_answer


async def show_venue(request: web.Request) -> web.Response:
    """Return the venue with its tables and slots."""
    venue = request[ENVIRONMENT].database.peek(_read_venue)
    return answer(venue_answer(*venue))


async def show_availability(request: web.Request) -> web.Response:
    """Return the free tables on a date or in one of its slots; indicative only."""
    day, slot = read_availability_query(request)
    tables = request[ENVIRONMENT].database.peek(_read_availability, day, slot)
    return answer(availability_answer(day.isoformat(), slot, tables))


def _read_venue(reader: Reader) -> tuple[Venue, list[Table], list[Slot]]:
    return get_venue(reader), list_tables(reader), list_slots(reader)


def _read_availability(reader: Reader, day: date, start: str | None) -> list[TableAvailability]:
    venue, slot = get_venue(reader), None
    zone = reader.zones.zone(venue.time_zone)
    if not may_be_booked(day, tonight(reader.now, zone, venue.evening_ends_at)):
        raise DateOutOfRange(field="date")
    if start is not None:
        slot = find_slot(list_slots(reader), start, day)
        if slot is None:
            raise InvalidSlot(field="slot")
    wanted = interval(slot, venue.evening_ends_at)
    date_ = day.isoformat()
    closed = find_closure(venue, list_closings(reader), date_) is not None
    closed |= has_ended(slot, day, venue, zone, reader.now)
    return find_availability(list_tables(reader), list_holds(reader, date_), wanted, closed=closed)
