"""Which tables are free in a slot or a whole evening (interface, section 2.4)."""

from collections.abc import Iterable
from dataclasses import dataclass

from appliance.core.errors import VenueClosed, VenueInactive
from appliance.venue.model import Closing, Table, Venue, overlap


@dataclass(frozen=True, slots=True)
class TableAvailability:
    """One table's answer; `blocked_by` is a source, or None when free or not bookable."""

    table: Table
    available: bool
    blocked_by: str | None


def find_closure(venue: Venue, closings: Iterable[Closing], day: str) -> VenueInactive | None:
    """Why nothing can be booked on `day` (YYYY-MM-DD); None when the venue is open."""
    if venue.status != "active":
        return VenueInactive()
    if any(closing.holds(day) for closing in closings):
        return VenueClosed(field="date")
    return None


def find_availability(
    tables: Iterable[Table], holds: Iterable[tuple[str, int, int, str]], wanted: tuple[int, int],
    *, closed: bool = False,
) -> list[TableAvailability]:  # fmt: skip
    """The tables in their order; `holds` are (table id, starts, ends, source), earliest first.

    `wanted` are the minutes [starts, ends) that have to be free. While `closed`, no table is
    available; of one that cannot be booked, nobody is named.
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
