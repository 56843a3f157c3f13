"""Which tables a party could have: those that are free then and seat so many."""

from datetime import date

from appliance.model.evening import day_of_week, find_slot, interval, overlap
from appliance.model.venue import Slot, Table
from appliance.store.connection import Reader
from appliance.store.reservations import list_holds
from appliance.store.venue import get_venue, list_slots, list_tables


def offer_tables(reader: Reader, day: date, slot: str | None, guests: int) -> list[Table]:
    """Free bookable tables of that evening and slot for so many guests, in the venue's order."""
    found = find_slot(list_slots(reader), slot, day) if slot else None
    if slot and found is None:
        return []
    wanted = interval(found, get_venue(reader).evening_ends_at)
    return [
        table
        for table in free_tables(reader, day.isoformat(), wanted)
        if table.bookable and table.capacity_min <= guests <= table.capacity_max
    ]


def free_tables(reader: Reader, day: str, wanted: tuple[int, int]) -> list[Table]:
    """Every table that nobody holds during those minutes of the evening."""
    held = {
        table_id
        for table_id, starts, ends, _ in list_holds(reader, day)
        if overlap((starts, ends), wanted)
    }
    return [table for table in list_tables(reader) if table.id not in held]


def slots_of(reader: Reader, day: date) -> list[Slot]:
    """What is offered on that weekday, as the evening goes: after midnight is late."""
    weekday, ends = day_of_week(day), get_venue(reader).evening_ends_at
    offered = [slot for slot in list_slots(reader) if weekday in slot.days_of_week]
    return sorted(offered, key=lambda slot: interval(slot, ends))
