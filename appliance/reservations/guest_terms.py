"""Deadlines for guests: cancellation, the start and end of slots and evenings."""

from collections.abc import Iterable
from datetime import date
from zoneinfo import ZoneInfo

from appliance.reservations.calendar_file import hours_of, minute_of
from appliance.reservations.model import Reservation
from appliance.venue.model import (
    WHOLE_EVENING,
    Slot,
    Venue,
    day_of_week,
    evening_end,
    instant,
    interval,
)

_HOUR = 3_600_000


def cancel_deadline(
    reservation: Reservation, slots: tuple[Slot, ...], venue: Venue, zone: ZoneInfo, hours: int
) -> int:
    """Return the cancellation deadline in ms since 1970: `hours` before the start.

    For a whole evening without slots, it is `hours` before the evening's end.
    """
    day = date.fromisoformat(reservation.date)
    expected = hours_of(reservation, slots, venue.evening_ends_at)
    if expected is None:
        return evening_end(day, zone, venue.evening_ends_at) - hours * _HOUR
    return minute_of(day, expected[0], zone) - hours * _HOUR


def offered_slots(slots: Iterable[Slot], day: date) -> list[Slot]:
    """Return the slots offered on `day`, in the venue's order."""
    weekday = day_of_week(day)
    return [slot for slot in slots if weekday in slot.days_of_week]


def has_begun(
    slot: Slot | None, slots: Iterable[Slot], day: date, venue: Venue, zone: ZoneInfo, now: int
) -> bool:
    """Whether a slot has begun at `now` (ms); for None, whether the last slot of `day` has.

    Without slots, a whole evening begins at 23:59.
    """
    begins = [interval(one, venue.evening_ends_at)[0] for one in offered_slots(slots, day)]
    if slot is not None:
        begins = [interval(slot, venue.evening_ends_at)[0]]
    if not begins:
        return now >= instant(day, "23:59", zone)
    return now >= minute_of(day, max(begins), zone)


def has_ended(slot: Slot | None, day: date, venue: Venue, zone: ZoneInfo, now: int) -> bool:
    """Whether a slot is over at `now` (ms); always False for the whole evening (None)."""
    return slot is not None and now >= minute_of(
        day, interval(slot, venue.evening_ends_at)[1], zone
    )


def evening_is_over(reservation: Reservation, venue: Venue, zone: ZoneInfo, now: int) -> bool:
    """Whether the reservation's evening has ended at `now` (ms)."""
    return now >= evening_end(date.fromisoformat(reservation.date), zone, venue.evening_ends_at)


def wanted_interval(slot: Slot | None, venue: Venue) -> tuple[int, int]:
    """Return the minutes [starts, ends) that a booking of `slot` (None: whole evening) holds."""
    return WHOLE_EVENING if slot is None else interval(slot, venue.evening_ends_at)
