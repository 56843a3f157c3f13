"""What the booking page offers: which hours of an evening have which tables for a party."""

from dataclasses import dataclass
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from appliance.model.availability import find_availability
from appliance.model.evening import may_be_booked, tonight
from appliance.model.guest_terms import has_begun, offered_slots, wanted_interval
from appliance.model.venue import Slot, Table, Venue
from appliance.store.connection import Reader
from appliance.store.reservations import list_holds
from appliance.store.venue import get_venue, list_closings, list_slots, list_tables

WHOLE_EVENING = "evening"  # what a form says for no slot
_NEXT_DAYS = 7


@dataclass(frozen=True, slots=True)
class Choice:
    """An hour that may be chosen. `when` is `HH:MM` or `evening`; `slot` None the latter."""

    when: str
    slot: Slot | None
    tables: tuple[Table, ...]
    has_begun: bool

    @property
    def is_free(self) -> bool:
        """Whether the party may book it."""
        return bool(self.tables) and not self.has_begun


@dataclass(frozen=True, slots=True)
class Offer:
    """An evening as a party of `guests` may book it; `most` is what the largest table seats."""

    venue: Venue
    zone: ZoneInfo
    tonight: date
    day: date
    guests: int
    most: int
    is_closed: bool
    choices: tuple[Choice, ...]
    next_days: tuple[date, ...]  # tonight and the days that follow, without the closing days

    @property
    def is_free(self) -> bool:
        """Whether anything is left."""
        return any(choice.is_free for choice in self.choices)

    def choice(self, when: str) -> Choice | None:
        """The choice of that name."""
        return next((one for one in self.choices if one.when == when), None)


def read_offer(reader: Reader, wanted: date | None, guests: int) -> Offer:
    """What is offered on `wanted`; tonight when it is None or cannot be booked."""
    venue, slots, tables = get_venue(reader), list_slots(reader), list_tables(reader)
    zone, now = reader.zones.zone(venue.time_zone), reader.now
    this_evening = tonight(now, zone, venue.evening_ends_at)
    day = wanted if wanted and may_be_booked(wanted, this_evening) else this_evening
    text = day.isoformat()
    closings = list_closings(reader)
    is_closed = any(closing.holds(text) for closing in closings)
    days = [this_evening + timedelta(days=n) for n in range(_NEXT_DAYS)]
    holds = list_holds(reader, text)
    bookable = [table for table in tables if table.bookable]
    most = max((table.capacity_max for table in bookable), default=1)
    party = min(max(guests, 1), most)

    def choice(slot: Slot | None) -> Choice:
        found = find_availability(tables, holds, wanted_interval(slot, venue), closed=is_closed)
        free = tuple(one.table for one in found if one.available and _seats(one.table, party))
        is_late = has_begun(slot, slots, day, venue, zone, now)
        return Choice(slot.start if slot else WHOLE_EVENING, slot, free, is_late)

    offered = sorted(offered_slots(slots, day), key=lambda s: wanted_interval(s, venue))
    return Offer(
        venue=venue,
        zone=zone,
        tonight=this_evening,
        day=day,
        guests=party,
        most=most,
        is_closed=is_closed,
        choices=tuple(choice(slot) for slot in (*offered, None)),
        next_days=tuple(
            day for day in days if not any(one.holds(day.isoformat()) for one in closings)
        ),
    )


def _seats(table: Table, guests: int) -> bool:
    return table.capacity_min <= guests <= table.capacity_max
