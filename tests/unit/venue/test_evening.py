"""Intervals compared with brute force, and evenings in Casablanca from 2018 to 2040."""

import re
from datetime import UTC, date, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from appliance.clock import newest_zone_database, parse_instant
from appliance.venue.model import (
    Slot,
    evening_end,
    find_slot,
    instant,
    interval,
    link_expiry,
    may_be_booked,
    minutes,
    overlap,
    tonight,
)

CASABLANCA = newest_zone_database().zone("Africa/Casablanca")
FROM, UNTIL = parse_instant("2018-01-01T00:00:00Z"), parse_instant("2041-01-01T00:00:00Z")
BEFORE_THE_REPEATED_HOUR = parse_instant("2026-09-20T00:59:00Z")  # 01:59 at +01
AFTER_IT_BEGAN_AGAIN = parse_instant("2026-09-20T01:00:00Z")  # 01:00 at +00

INSTANTS = st.integers(FROM, UNTIL)
DAYS = st.dates(date(2018, 1, 1), date(2040, 12, 31))
TIMES = st.builds("{:02d}:{:02d}".format, st.integers(0, 23), st.integers(0, 59))
ENDS = st.builds("{:02d}:{:02d}".format, st.integers(0, 11), st.integers(0, 59))
SLOTS = st.builds(Slot, st.just("id"), st.just("Dîner"), TIMES, TIMES, st.just(tuple(range(7))))


def minutes_held(slot: Slot | None, ends_at: str) -> set[int]:
    """Return the held minutes by walking the clock from `start` to `end`.

    A slot is shorter than two days. The walk begins after midnight if `start` is before the end of
    the evening.
    """
    if slot is None:
        return set(range(2880))
    held, at = set(), minutes(slot.start) + (1440 if slot.start < ends_at else 0)
    while True:
        held.add(at)
        at += 1
        if at % 1440 == minutes(slot.end):
            return held


@given(st.none() | SLOTS, st.none() | SLOTS, ENDS)
def test_two_intervals_overlap_exactly_if_they_share_a_minute(one: Slot | None, other, ends_at):
    shared = minutes_held(one, ends_at) & minutes_held(other, ends_at)

    assert overlap(interval(one, ends_at), interval(other, ends_at)) == bool(shared)


@given(SLOTS, ENDS)
def test_an_interval_contains_exactly_the_minutes_of_its_slot(slot: Slot, ends_at: str):
    starts, ends = interval(slot, ends_at)

    assert set(range(starts, ends)) == minutes_held(slot, ends_at)


def test_a_slot_is_found_only_by_its_start_and_on_its_own_days():
    dinner = Slot("a", "Dîner", "19:30", "22:00", (5, 6))
    brunch = Slot("b", "Brunch", "12:00", "15:00", (0,))
    saturday, sunday = date(2026, 11, 21), date(2026, 11, 22)

    assert find_slot([dinner, brunch], "19:30", saturday) is dinner
    assert find_slot([dinner, brunch], "12:00", sunday) is brunch
    assert find_slot([dinner, brunch], "12:00", saturday) is None
    assert find_slot([dinner, brunch], "20:00", saturday) is None


@given(INSTANTS, ENDS)
@example(BEFORE_THE_REPEATED_HOUR, "01:30")
@example(AFTER_IT_BEGAN_AGAIN, "01:30")
@example(AFTER_IT_BEGAN_AGAIN, "01:00")
@example(parse_instant("2020-05-31T02:15:00Z"), "02:30")
def test_tonight_is_the_current_evening_or_the_next_one(now: int, ends: str):
    day = tonight(now, CASABLANCA, ends)

    assert evening_end(day - timedelta(days=1), CASABLANCA, ends) <= now
    assert now < evening_end(day, CASABLANCA, ends)


@given(DAYS)
@example(date(2026, 9, 19))
def test_a_link_expires_at_noon_of_the_next_day_after_the_evening_has_ended(day: date):
    expires = link_expiry(day, CASABLANCA)

    local = datetime.fromtimestamp(expires / 1000, UTC).astimezone(CASABLANCA)
    assert (local.date(), local.hour, local.minute) == (day + timedelta(days=1), 12, 0)
    assert expires > evening_end(day, CASABLANCA, "06:00")


@given(DAYS, TIMES)
def test_an_instant_maps_to_its_date_and_time_except_in_a_skipped_hour(day, at: str):
    local = datetime.fromtimestamp(instant(day, at, CASABLANCA) / 1000, UTC).astimezone(CASABLANCA)

    assert local.date() == day
    assert f"{local:%H:%M}" == at or re.match("0[23]:", at)


@given(DAYS, st.integers(-3, 800))
@example(date(2026, 11, 21), 730)
@example(date(2026, 11, 21), 731)
@example(date(2026, 11, 21), -1)
def test_a_date_can_be_booked_from_tonight_to_730_days_ahead(tonight_is: date, ahead: int):
    assert may_be_booked(tonight_is + timedelta(days=ahead), tonight_is) == (0 <= ahead <= 730)
