"""The venue's rows: itself, its tables, its slots."""

import json
from dataclasses import replace

from appliance.model.venue import Slot, Table, Venue
from appliance.store.connection import Reader, Row

_TABLE_COLUMNS = """
    id, number, name, capacity_min, capacity_max, minimum_spend, type, bookable
"""


def get_venue(reader: Reader) -> Venue:
    """The venue that this box serves."""
    row = reader.row(
        """SELECT id, name, slug, status, reservation_mode, auto_confirm,
                  request_expiry_hours, currency, time_zone, evening_ends_at, policies
           FROM venue"""
    )
    if row is None:
        raise LookupError("the box has no venue yet")
    *head, policies = row
    venue = Venue(*(*head, json.loads(policies) if policies else None))
    return replace(venue, auto_confirm=bool(venue.auto_confirm))


def list_tables(reader: Reader) -> list[Table]:
    """Every table, in the venue's order."""
    rows = reader.rows(f"SELECT {_TABLE_COLUMNS} FROM venue_table ORDER BY position, number")  # noqa: S608
    return [_table(row) for row in rows]


def find_table(reader: Reader, table_id: str) -> Table | None:
    """The table of that id."""
    row = reader.row(
        f"SELECT {_TABLE_COLUMNS} FROM venue_table WHERE id = :id",  # noqa: S608
        {"id": table_id},
    )
    return None if row is None else _table(row)


def list_slots(reader: Reader) -> list[Slot]:
    """Every slot, in the venue's order."""
    rows = reader.rows(
        'SELECT id, name, start, "end", days_of_week FROM slot ORDER BY position, start'
    )
    return [Slot(*(*head, tuple(json.loads(days)))) for *head, days in rows]


def _table(row: Row) -> Table:
    *head, bookable = row
    return Table(*(*head, bool(bookable)))
