"""Which tables are free in a slot or a whole evening (contract section 2.4)."""

from collections.abc import Iterable
from dataclasses import dataclass

from appliance.model.evening import interval, overlap
from appliance.model.venue import Slot, Table


@dataclass(frozen=True, slots=True)
class TableAvailability:
    """One table's answer; `blocked_by` is a source, or None when free or not bookable."""

    table: Table
    available: bool
    blocked_by: str | None


def find_availability(
    tables: Iterable[Table],
    holds: Iterable[tuple[str, int, int, str]],
    slot: Slot | None,
) -> list[TableAvailability]:
    """The tables in their order; `holds` are (table id, starts, ends, source), earliest first.

    Without a slot a table is available only when its whole evening is free.
    """
    wanted = interval(slot)
    blocked: dict[str, str] = {}
    for table_id, starts, ends, source in holds:
        if overlap(wanted, (starts, ends)):
            blocked.setdefault(table_id, source)
    return [
        TableAvailability(t, t.bookable and t.id not in blocked, blocked.get(t.id)) for t in tables
    ]
