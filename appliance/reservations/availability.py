"""Table availability in a slot or a whole evening (interface, section 2.4)."""

from collections.abc import Iterable
from dataclasses import dataclass

from appliance.core.errors import VenueClosed, VenueInactive
from appliance.venue.model import Closing, Table, Venue, overlap


@dataclass(frozen=True, slots=True)
class TableAvailability:
    """A table's availability; `blocked_by` is a source, or None if free or not bookable."""

    table: Table
    available: bool
    blocked_by: str | None


def find_closure(venue: Venue, closings: Iterable[Closing], day: str) -> VenueInactive | None:
    """Return the error if the venue is closed on `day` (YYYY-MM-DD), or None if it is open."""
    if venue.status != "active":
        return VenueInactive()
    if any(closing.holds(day) for closing in closings):
        return VenueClosed(field="date")
    return None


def find_availability(
    tables: Iterable[Table], holds: Iterable[tuple[str, int, int, str]], wanted: tuple[int, int],
    *, closed: bool = False,
) -> list[TableAvailability]:  # fmt: skip
    """Return each table's availability; `holds` are (table id, starts, ends, source), in order.

    `wanted` are the minutes [starts, ends) that must be free. If `closed`, no table is
    available. `blocked_by` is the earliest hold's source, except for unbookable tables.
    """
    blocked: dict[str, str] = {}
    for table_id, starts, ends, source in holds:
        if overlap(wanted, (starts, ends)):
            blocked.setdefault(table_id, source)
    return [
        TableAvailability(
            table,
            available=table.bookable and not closed and table.id not in blocked,
            blocked_by=blocked.get(table.id) if table.bookable else None,
        )
        for table in tables
    ]
