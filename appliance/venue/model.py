"""The venue's tables, slots and evenings: their rules and rows (interface, section 2.1).

A booked slot is stored as a date and `HH:MM`, not as a timestamp, so that new time zone rules do
not move bookings.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import combinations
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from appliance.core.errors import (
    GroupOutOfRange,
    GuestsOutOfRange,
    SlotNotOffered,
    SlotUnknown,
    VenueClosed,
    VenueInactive,
)
from appliance.core.phone_numbers import country_of, find_numbers
from appliance.database.connection import Reader, known


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `number` is its label in the room, such as T1.

    `minimum_spend` is in whole currency units.
    """

    id: str
    number: str
    name: str
    capacity_min: int
    capacity_max: int
    minimum_spend: int
    type: str
    bookable: bool

    def seats(self, guests: int) -> bool:
        """Whether a party of this size is within the table's minimum and maximum capacity."""
        return self.capacity_min <= guests <= self.capacity_max


@dataclass(frozen=True, slots=True)
class Slot:
    """A period of the evening that can be booked on `days_of_week` (0 = Sunday … 6 = Saturday).

    `start` and `end` are `HH:MM`. If `end` is not after `start`, it is on the next day.
    """

    id: str
    name: str
    start: str
    end: str
    days_of_week: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Closing:
    """A range of dates (YYYY-MM-DD, both included) on which nothing can be booked."""

    id: str
    first: str
    last: str
    reason: str

    def holds(self, day: str) -> bool:
        """Whether the closing includes `day` (YYYY-MM-DD)."""
        return self.first <= day <= self.last


@dataclass(frozen=True, slots=True)
class Venue:
    """The venue with its rules. Its tables and slots are stored apart.

    - `booking_page`: guests may book on /book.
    - `cancel_hours`: guests may cancel until so many hours before their slot.
    - `reminder_hours`: guests are reminded by email so many hours before their slot; 0 is never.
    - `early_minutes`: guests are admitted from so many minutes before their slot.
    - `payment_hours`: guests pay in advance within so many hours; 0 is no deadline.
    - `payment_frees`: reservations not paid by the deadline are cancelled.
    - `contact_days`: guests' names, contacts and notes are erased so many days after the evening.
    - `capacity`: how many people may be inside; None is no limit.
    """

    id: str
    name: str
    slug: str
    status: str
    reservation_mode: str
    auto_confirm: bool
    request_expiry_hours: int
    currency: str
    time_zone: str
    evening_ends_at: str
    policies: dict[str, Any] | None
    address: str | None = None
    map_url: str | None = None
    phone: str | None = None
    booking_page: bool = False
    cancel_hours: int = 2
    reminder_hours: int = 24
    early_minutes: int = 120
    contact_days: int = 30
    house_email: str | None = None
    hears_requests: bool = True
    hears_cancellations: bool = True
    hears_payments: bool = True
    hears_checks: bool = True
    slots_only: bool = False
    names_at_door: str = "initial"
    payment_how: str | None = None
    payment_hours: int = 0
    payment_frees: bool = False
    capacity: int | None = None

    def how_to_pay(self, amount: int, code: str | None) -> str | None:
        """Return how a guest pays `amount`, with amount and access code entered, or None."""
        if not self.payment_how:
            return None
        text = self.payment_how.replace("{amount}", str(amount))
        return text.replace("{code}", code or "")

    @property
    def shows_contacts(self) -> bool:
        """Whether partners can see customers' contact data (interface, section 4, rule 1)."""
        return self.reservation_mode == "free"

    @property
    def late_minutes(self) -> int | None:
        """How long a table is kept for a party that does not come, or None without such a rule."""
        minutes = (self.policies or {}).get("lateArrivalMinutes")
        return minutes if type(minutes) is int else None

    @property
    def phone_numbers(self) -> tuple[str, ...]:
        """The sure numbers in `phone`, in E.164."""
        return _find_phone_numbers(self.phone, self.time_zone)

    @property
    def way(self) -> str | None:
        """The URL of a map that shows the venue.

        This is `map_url` if that is set. Otherwise, it is the URL of a search for the address. None
        if the venue has neither a `map_url` nor an address.
        """
        if self.map_url or not self.address:
            return self.map_url
        return f"https://www.openstreetmap.org/search?query={quote(self.address, safe='')}"


@lru_cache(maxsize=4)  # many pages show the venue's number, which rarely changes
def _find_phone_numbers(phone: str | None, time_zone: str) -> tuple[str, ...]:
    return tuple(find_numbers(phone, country_of(time_zone)))


def find_closure(venue: Venue, closings: Iterable[Closing], day: str) -> VenueInactive | None:
    """Return the error to raise if the venue is inactive, or closed on `day` (YYYY-MM-DD).

    Returns None if the venue is open.
    """
    if venue.status != "active":
        return VenueInactive()
    if any(closing.holds(day) for closing in closings):
        return VenueClosed(field="date")
    return None


def fingerprint(value: object) -> str:
    """Return a hash of a value.

    A form contains the hash of the value that it shows. If the value changes before the form is
    submitted, the hashes differ.
    """
    return hashlib.sha256(repr(value).encode()).hexdigest()[:32]


DAY_MINUTES = 24 * 60
WHOLE_EVENING = (0, 2 * DAY_MINUTES)
BOOKING_HORIZON_DAYS = 730
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SLOT = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")


def parse_date(text: object) -> date | None:
    """Return the date for a `YYYY-MM-DD` string, or None if `text` is anything else."""
    if not isinstance(text, str) or not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def is_slot(text: object) -> bool:
    """Whether `text` is a valid time of day in the form `HH:MM`."""
    return isinstance(text, str) and _SLOT.fullmatch(text) is not None


def minutes(slot: str) -> int:
    """Convert `HH:MM` to minutes after midnight."""
    return int(slot[:2]) * 60 + int(slot[3:])


def day_of_week(day: date) -> int:
    """Return the day of the week, from 0 (Sunday) to 6 (Saturday)."""
    return day.isoweekday() % 7


def offered_slots(slots: Iterable[Slot], day: date) -> list[Slot]:
    """Return the slots in `slots` that are offered on `day`."""
    weekday = day_of_week(day)
    return [slot for slot in slots if weekday in slot.days_of_week]


def find_slot(slots: Iterable[Slot], start: str, day: date) -> Slot | None:
    """Return the slot that starts at `start` (`HH:MM`) and is offered on `day`, or None."""
    weekday = day_of_week(day)
    for slot in slots:  # a loop is three times as fast as a generator expression
        if slot.start == start and weekday in slot.days_of_week:
            return slot
    return None


def interval(slot: Slot | None, evening_ends_at: str) -> tuple[int, int]:
    """Return the slot's interval [starts, ends), in minutes after 00:00 on the evening's date.

    If `slot` is None, return the interval for the whole evening. A slot that starts before
    `evening_ends_at` is on the next day, so 24 hours are added to its start and end. It may
    therefore overlap a slot that begins before midnight and ends after midnight.
    """
    if slot is None:
        return WHOLE_EVENING
    starts, ends = minutes(slot.start), minutes(slot.end)
    if ends <= starts:
        ends += DAY_MINUTES
    if starts < minutes(evening_ends_at):
        return starts + DAY_MINUTES, ends + DAY_MINUTES
    return starts, ends


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two intervals [starts, ends) share at least one minute."""
    return one[0] < other[1] and other[0] < one[1]


def evening_hours(slots: Iterable[Slot], day: date, evening_ends_at: str) -> tuple[int, int] | None:
    """Return (first start, last end) of the slots on `day`, in minutes after midnight.

    Return None if no slot is offered that day.
    """
    offered = [interval(slot, evening_ends_at) for slot in offered_slots(slots, day)]
    if not offered:
        return None
    return min(start for start, _ in offered), max(end for _, end in offered)


def has_begun(
    slot: Slot | None, slots: Iterable[Slot], day: date, venue: Venue, zone: ZoneInfo, now: int
) -> bool:
    """Whether a slot has begun by `now` (ms since 1970).

    If `slot` is None (the whole evening), return whether the last slot on `day` has begun. If there
    are no slots, the evening is assumed to begin at 23:59.
    """
    offered = offered_slots(slots, day) if slot is None else [slot]
    begins = [interval(each, venue.evening_ends_at)[0] for each in offered]
    return now >= minute_of(day, max(begins, default=DAY_MINUTES - 1), zone)


def has_ended(slot: Slot | None, day: date, venue: Venue, zone: ZoneInfo, now: int) -> bool:
    """Whether a slot has ended by `now` (ms since 1970).

    The result is always False if `slot` is None (the whole evening).
    """
    if slot is None:
        return False
    return now >= minute_of(day, interval(slot, venue.evening_ends_at)[1], zone)


def tonight(now: int, zone: ZoneInfo, evening_ends_at: str) -> date:
    """Return the date of the evening to which the time `now` (ms since 1970) belongs.

    Until `evening_ends_at`, this is yesterday's date. Compares timestamps instead of times of day,
    so that the date never goes back a day when daylight saving time ends and an hour occurs twice.
    """
    today = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone).date()
    yesterday = today - timedelta(days=1)
    return yesterday if now < evening_end(yesterday, zone, evening_ends_at) else today


def may_be_booked(day: date, first: date) -> bool:
    """Whether `day` can be booked: from `first` (tonight) until 730 days later, both included."""
    return first <= day <= first + timedelta(days=BOOKING_HORIZON_DAYS)


def instant(day: date, clock_time: str, zone: ZoneInfo) -> int:
    """Return the timestamp (ms since 1970) for a date and `HH:MM` in the time zone `zone`."""
    return minute_of(day, minutes(clock_time), zone)


@lru_cache(maxsize=4096)
def minute_of(day: date, offset: int, zone: ZoneInfo) -> int:
    """Return the timestamp (ms since 1970) for `offset` minutes after 00:00 on `day`.

    Minutes are counted on the wall clock in the time zone `zone`.
    """
    local = datetime.combine(day, time(), zone) + timedelta(minutes=offset)
    return round(local.timestamp() * 1000)


def evening_end(day: date, zone: ZoneInfo, evening_ends_at: str) -> int:
    """Return when the evening of `day` ends, in ms since 1970."""
    return instant(day + timedelta(days=1), evening_ends_at, zone)


def link_expiry(day: date, zone: ZoneInfo) -> int:
    """Return when the guests' links for the evening of `day` expire, in ms since 1970.

    This is 12:00 venue time on the next day (`accessLinkExpiresAt` in the interface).
    """
    return instant(day + timedelta(days=1), "12:00", zone)


def overlapping_slots(slots: Iterable[Slot], evening_ends_at: str) -> list[tuple[Slot, Slot]]:
    """Return the pairs of slots that overlap on at least one weekday.

    A table that is booked for one slot of a pair cannot be booked for the other.
    """
    pairs = combinations(sorted(slots, key=lambda slot: interval(slot, evening_ends_at)), 2)
    return [
        (first, second)
        for first, second in pairs
        if set(first.days_of_week) & set(second.days_of_week)
        and overlap(interval(first, evening_ends_at), interval(second, evening_ends_at))
    ]


_TABLE_COLUMNS = """
    id, number, name, capacity_min, capacity_max, minimum_spend, type, bookable
"""


def get_venue(reader: Reader) -> Venue:
    """Return the venue. Raises LookupError if the box has none yet."""
    return reader.keep("venue", _load_venue)


def _load_venue(reader: Reader) -> Venue:
    sql = """SELECT id, name, slug, status, reservation_mode, auto_confirm, request_expiry_hours,
                    currency, time_zone, evening_ends_at, policies, address, map_url,
                    phone, booking_page, cancel_hours, reminder_hours, early_minutes,
                    contact_days, house_email, hears_requests, hears_cancellations,
                    hears_payments, hears_checks, slots_only, names_at_door, payment_how,
                    payment_hours, payment_frees, capacity
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
    kinds = [field.type for field in fields(Venue)]
    pairs = zip(kinds, (*row[:10], policies, *row[11:]), strict=True)
    values: list[Any] = [bool(value) if kind is bool else value for kind, value in pairs]
    return Venue(*values)


def list_tables(reader: Reader) -> list[Table]:
    """Return all tables, in the venue's order."""
    return list(reader.keep("venue_table", _load_tables).values())


def find_table(reader: Reader, table_id: str) -> Table | None:
    """Return the table with this id, or None."""
    return reader.keep("venue_table", _load_tables).get(table_id)


def _load_tables(reader: Reader) -> dict[str, Table]:
    rows = reader.rows(f"SELECT {_TABLE_COLUMNS} FROM venue_table ORDER BY position, number")  # noqa: S608
    return {row[0]: _table(*row) for row in rows}


def check_seats(tables: Sequence[Table], guests: int, field: str) -> None:
    """Raise GuestsOutOfRange for `field` if the tables together do not seat so many guests."""
    seat = seat_together(tables)
    if not seat.seats(guests):
        refusal = GuestsOutOfRange if len(tables) == 1 else GroupOutOfRange
        capacities = {"capacity_min": seat.capacity_min, "capacity_max": seat.capacity_max}
        raise refusal(field=field, **capacities)


def seat_together(tables: Sequence[Table]) -> Table:
    """Return several tables as one, with their capacities and minimum spends added up."""
    first = tables[0]
    if len(tables) == 1:
        return first
    return Table(
        first.id,
        ", ".join(table.number for table in tables),
        ", ".join(table.name for table in tables),
        sum(table.capacity_min for table in tables),
        sum(table.capacity_max for table in tables),
        sum(table.minimum_spend for table in tables),
        first.type,
        all(table.bookable for table in tables),
    )


def get_table(reader: Reader, table_id: str) -> Table:
    """Return the table with this id. Raises NotFound if there is none."""
    return known(find_table(reader, table_id))


def list_used_tables(reader: Reader) -> set[str]:
    """Return the ids of tables that have ever been booked. These tables must not be deleted."""
    sql = """SELECT table_id FROM reservation
             UNION SELECT value FROM reservation, json_each(table_ids)
             UNION SELECT table_id FROM hold"""
    return {row[0] for row in reader.rows(sql)}


def list_slots(reader: Reader) -> list[Slot]:
    """Return all slots, in the venue's order."""
    return list(reader.keep("slot", _load_slots))


def _load_slots(reader: Reader) -> list[Slot]:
    rows = reader.rows(
        'SELECT id, name, start, "end", days_of_week FROM slot ORDER BY position, start'
    )
    return [Slot(*(*head, _weekdays(days))) for *head, days in rows]


@lru_cache(maxsize=64)
def _weekdays(days: str) -> tuple[int, ...]:
    return tuple(json.loads(days))


def get_offered_slot(reader: Reader, start: str, day: date) -> Slot:
    """Return the slot that starts at `start` (`HH:MM`) on `day`.

    Raises SlotNotOffered if it is offered on other weekdays only, and SlotUnknown if no slot starts
    then.
    """
    slots = list_slots(reader)
    slot = find_slot(slots, start, day)
    if slot is not None:
        return slot
    offered = ", ".join(each.start for each in offered_slots(slots, day)) or "–"
    refusal = SlotNotOffered if any(each.start == start for each in slots) else SlotUnknown
    raise refusal(field="slot", slot=start, date=day.isoformat(), offered=offered)


def get_slot(reader: Reader, slot_id: str) -> Slot:
    """Return the slot with this id. Raises NotFound if there is none."""
    return known(next((slot for slot in list_slots(reader) if slot.id == slot_id), None))


def list_closings(reader: Reader) -> list[Closing]:
    """Return all closings, sorted by their first day."""
    return list(reader.keep("closing_day", _load_closings))


def _load_closings(reader: Reader) -> list[Closing]:
    sql = "SELECT id, first_day, last_day, reason FROM closing_day ORDER BY first_day, last_day, id"
    return [Closing(*row) for row in reader.rows(sql)]


def find_closing(reader: Reader, day: str) -> Closing | None:
    """Return the first closing that includes `day` (YYYY-MM-DD), or None."""
    return next((closing for closing in list_closings(reader) if closing.holds(day)), None)


def _table(*row: Any) -> Table:
    return Table(*(*row[:-1], bool(row[-1])))


def find_tonight(reader: Reader, at: int | None = None) -> date:
    """Return the date of the evening to which `at` (ms since 1970, default: now) belongs."""
    venue = get_venue(reader)
    at = reader.now if at is None else at
    return tonight(at, reader.zones.zone(venue.time_zone), venue.evening_ends_at)
