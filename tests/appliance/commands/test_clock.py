"""`venuebox clock confirm`: a person who looked at the date vouches for the machine's clock."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from appliance.clock import SystemClock
from appliance.commands.console import Console
from appliance.data_directory import DataDirectory
from appliance.store.conditions import Condition, list_conditions, put_condition
from appliance.store.heartbeat import find_heartbeat
from appliance.tokens import Tokens

LEAPT = Condition("clock_leapt", "", 0, "the clock leapt")
ENVIRONMENTS = ("live", "test")


@pytest.fixture
def console():
    return Console(SystemClock(), Tokens(), {})


@pytest.fixture
def today(monkeypatch):
    """Noon in Casablanca, so that no midnight passes while the test looks."""
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    monkeypatch.setattr(time, "time_ns", lambda: int(noon.timestamp()) * 1_000_000_000)
    return noon.date()


def test_whoever_types_the_day_lets_things_expire_again(box, console, today):
    directory = DataDirectory(box.data)
    for name in ENVIRONMENTS:
        with console.transaction(directory, name) as tx:
            put_condition(tx, LEAPT)

    assert box("clock", "confirm", today.isoformat()) == 0

    assert "2026-11-22 12:00" in box.out
    for name in ENVIRONMENTS:
        with console.reading(directory, name) as reader:
            assert list_conditions(reader) == []
            assert find_heartbeat(reader) == SystemClock().now()


def test_a_clock_that_tells_another_day_is_to_be_set_first(box, console, today):
    directory = DataDirectory(box.data)
    with console.transaction(directory, "live") as tx:
        put_condition(tx, LEAPT)

    complaint = box.complaint("clock", "confirm", (today - timedelta(days=365)).isoformat())

    assert "this machine's clock says 2026-11-22 12:00: set it first" in complaint
    with console.reading(directory, "live") as reader:
        assert list_conditions(reader) == [LEAPT]


def test_what_is_no_date_is_wrong_usage(box):
    assert "2026-11-22" in box.complaint("clock", "confirm", "tomorrow", status=2)
