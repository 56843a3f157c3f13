"""Venue time: the evening, its slots as intervals, and which dates may be booked.

A slot is a date and an `HH:MM`, never an instant: a zone rule that changes moves no booking.
"""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from appliance.model.venue import Slot

_DAY = 24 * 60
WHOLE_EVENING = (0, 2 * _DAY)
BOOKING_HORIZON_DAYS = 730
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SLOT = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")


def parse_date(text: object) -> date | None:
    """The date of `YYYY-MM-DD`, or None for anything else."""
    if not isinstance(text, str) or not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def is_slot(text: object) -> bool:
    """Whether `text` is a real time of day, `HH:MM`."""
    return isinstance(text, str) and _SLOT.fullmatch(text) is not None


def minutes(slot: str) -> int:
    """Minutes after midnight of `HH:MM`."""
    return int(slot[:2]) * 60 + int(slot[3:])


def day_of_week(day: date) -> int:
    """0 = Sunday … 6 = Saturday."""
    return day.isoweekday() % 7


def find_slot(slots: Iterable[Slot], start: str, day: date) -> Slot | None:
    """The slot offered on `day` that starts at `start`."""
    weekday = day_of_week(day)
    for slot in slots:  # as a generator it takes three times as long
        if slot.start == start and weekday in slot.days_of_week:
            return slot
    return None


def interval(slot: Slot | None, evening_ends_at: str) -> tuple[int, int]:
    """The minutes [starts, ends) that a slot holds; no slot holds the whole evening.

    They count from midnight of the evening's date. A slot that starts before the evening ends
    is one after midnight: it overlaps the slot that runs into it.
    """
    if slot is None:
        return WHOLE_EVENING
    starts, ends = minutes(slot.start), minutes(slot.end)
    if ends <= starts:
        ends += _DAY
    if starts < minutes(evening_ends_at):
        return starts + _DAY, ends + _DAY
    return starts, ends


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two intervals share a minute."""
    return one[0] < other[1] and other[0] < one[1]


def tonight(now: int, zone: ZoneInfo, evening_ends_at: str) -> date:
    """The evening that `now` (ms) belongs to: before `evening_ends_at` it is yesterday's.

    By the instants of `evening_end`: in an hour that the clock repeats it does not go back.
    """
    today = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone).date()
    yesterday = today - timedelta(days=1)
    return yesterday if now < evening_end(yesterday, zone, evening_ends_at) else today


def may_be_booked(day: date, tonight_is: date) -> bool:
    """Whether `day` is from tonight to 730 days ahead."""
    return tonight_is <= day <= tonight_is + timedelta(days=BOOKING_HORIZON_DAYS)


@lru_cache(maxsize=2048)
def instant(day: date, clock_time: str, zone: ZoneInfo) -> int:
    """Milliseconds since 1970 of a venue date and `HH:MM`."""
    at = time(int(clock_time[:2]), int(clock_time[3:]))
    return round(datetime.combine(day, at, zone).timestamp() * 1000)


def evening_end(day: date, zone: ZoneInfo, evening_ends_at: str) -> int:
    """When the evening of `day` is over, in milliseconds since 1970."""
    return instant(day + timedelta(days=1), evening_ends_at, zone)


def link_expiry(day: date, zone: ZoneInfo) -> int:
    """`accessLinkExpiresAt`: the day after the evening at 12:00 venue time."""
    return instant(day + timedelta(days=1), "12:00", zone)
