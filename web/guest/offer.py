"""What the booking page offers: which hours of an evening have which tables for a party."""

from dataclasses import dataclass
from datetime import date, timedelta

from appliance.environment import Environment
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


def takes_bookings(environment: Environment) -> bool:
    """Whether guests may book on these pages."""
    return environment.name == "test" or environment.settings.booking.enabled


def read_offer(reader: Reader, wanted: date | None, guests: int) -> Offer:
    """What is offered on `wanted`; tonight when it is None or cannot be booked."""
    venue, slots, tables = get_venue(reader), list_slots(reader), list_tables(reader)
    zone, now = reader.zones.zone(venue.time_zone), reader.now
    this_evening = tonight(now, zone, venue.evening_ends_at)
    day = wanted if wanted and may_be_booked(wanted, this_evening) else this_evening
    closings, holds = list_closings(reader), list_holds(reader, day.isoformat())
    most = max((table.capacity_max for table in tables if table.bookable), default=1)
    party = min(max(guests, 1), most)

    def is_closed(evening: date) -> bool:
        return any(closing.holds(evening.isoformat()) for closing in closings)

    def choice(slot: Slot | None) -> Choice:
        hours = wanted_interval(slot, venue)
        found = find_availability(tables, holds, hours, closed=is_closed(day))
        free = tuple(
            one.table
            for one in found
            if one.available and one.table.capacity_min <= party <= one.table.capacity_max
        )
        is_late = has_begun(slot, slots, day, venue, zone, now)
        return Choice(slot.start if slot else WHOLE_EVENING, slot, free, is_late)

    days = (this_evening + timedelta(days=n) for n in range(_NEXT_DAYS))
    offered = sorted(offered_slots(slots, day), key=lambda s: wanted_interval(s, venue))
    return Offer(
        venue=venue,
        tonight=this_evening,
        day=day,
        guests=party,
        most=most,
        is_closed=is_closed(day),
        choices=tuple(choice(slot) for slot in (*offered, None)),
        next_days=tuple(next_day for next_day in days if not is_closed(next_day)),
    )
