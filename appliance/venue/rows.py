"""Queries for the venue, its tables, slots, closings and future reservations."""

import json
from datetime import date
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from appliance.database.connection import Reader, known
from appliance.venue.model import Closing, Coming, Slot, Table, Venue, tonight

_TABLE_COLUMNS = """
    id, number, name, capacity_min, capacity_max, minimum_spend, type, bookable
"""


def get_venue(reader: Reader) -> Venue:
    """Return the venue. Raises LookupError if the box has none yet."""
    sql = """SELECT id, name, slug, status, reservation_mode, auto_confirm, request_expiry_hours,
                    currency, time_zone, evening_ends_at, policies, address, map_url,
                    phone
             FROM venue"""
    venue = reader.one(_venue, sql)
    if venue is None:
        raise LookupError("the box has no venue yet")
    return venue


def find_zone(reader: Reader) -> ZoneInfo:
    """Return the venue's time zone."""
    return reader.zones.zone(get_venue(reader).time_zone)


@lru_cache(maxsize=4)  # each booking and each scan reads the venue, which rarely changes
def _venue(*row: Any) -> Venue:
    policies = row[10] and json.loads(row[10])
    return Venue(*(*row[:5], bool(row[5]), *row[6:10], policies, *row[11:]))


def list_tables(reader: Reader) -> list[Table]:
    """Return all tables, in the venue's order."""
    rows = reader.rows(f"SELECT {_TABLE_COLUMNS} FROM venue_table ORDER BY position, number")  # noqa: S608
    return [_table(*row) for row in rows]


def find_table(reader: Reader, table_id: str) -> Table | None:
    """Return the table with this id, or None."""
    sql = f"SELECT {_TABLE_COLUMNS} FROM venue_table WHERE id = :id"  # noqa: S608
    return reader.one(_table, sql, {"id": table_id})


def get_table(reader: Reader, table_id: str) -> Table:
    """Return the table with this id. Raises NotFound if there is none."""
    return known(find_table(reader, table_id))


def list_used_tables(reader: Reader) -> set[str]:
    """Return the ids of tables that were ever booked. These tables must not be deleted."""
    return {row[0] for row in reader.rows("SELECT DISTINCT table_id FROM reservation")}


def list_slots(reader: Reader, start: str | None = None) -> list[Slot]:
    """Return the slots in the venue's order: all, or only those that start at `start` (HH:MM)."""
    sql = """SELECT id, name, start, "end", days_of_week FROM slot
             WHERE :start IS NULL OR start = :start ORDER BY position, start"""
    rows = reader.rows(sql, {"start": start})
    return [Slot(*(*head, _weekdays(days))) for *head, days in rows]


@lru_cache(maxsize=64)
def _weekdays(days: str) -> tuple[int, ...]:
    return tuple(json.loads(days))


def get_slot(reader: Reader, slot_id: str) -> Slot:
    """Return the slot with this id. Raises NotFound if there is none."""
    return known(next((slot for slot in list_slots(reader) if slot.id == slot_id), None))


def list_closings(reader: Reader) -> list[Closing]:
    """Return all closings, sorted by their first day."""
    sql = "SELECT id, first_day, last_day, reason FROM closing_day ORDER BY first_day, last_day, id"
    return [Closing(*row) for row in reader.rows(sql)]


def find_closing(reader: Reader, day: str) -> Closing | None:
    """Return the first closing that includes `day` (YYYY-MM-DD), or None."""
    return next((closing for closing in list_closings(reader) if closing.holds(day)), None)


def list_future_reservations(reader: Reader, since: str) -> list[Coming]:
    """Return the reservations on or after `since` (YYYY-MM-DD) that are still active.

    Cancelled, declined and completed reservations are not included. The result is sorted by date,
    slot and time of creation.
    """
    sql = """SELECT r.id, r.date, r.slot, r.starts, r.table_id, t.number, r.guests, r.customer_name
             FROM reservation r JOIN venue_table t ON t.id = r.table_id
             WHERE r.date >= :since AND r.status NOT IN ('cancelled', 'declined', 'completed')
             ORDER BY r.date, r.slot, r.created_at, r.id"""
    return [Coming(*row) for row in reader.rows(sql, {"since": since})]


def _table(*row: Any) -> Table:
    return Table(*(*row[:-1], bool(row[-1])))


def find_tonight(reader: Reader, at: int | None = None) -> date:
    """Return the date of the evening at the time `at` (ms since 1970, default: now)."""
    venue = get_venue(reader)
    at = reader.now if at is None else at
    return tonight(at, reader.zones.zone(venue.time_zone), venue.evening_ends_at)
