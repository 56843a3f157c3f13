"""When the box trusts the machine's clock, and how its timer reacts to clock changes."""

import asyncio

import pytest

from appliance.clock import Alarm, parse_instant
from tests.clocks import StoppedClock, box_clock

EVENING = "2026-11-21T19:00:00Z"


@pytest.fixture
def machine():
    """A machine's clock that no time server confirms."""
    made = StoppedClock(EVENING)
    made.synchronised = False
    return made


@pytest.fixture
def clock(machine):
    return box_clock(machine)


def after(seconds):
    return parse_instant(EVENING) + seconds * 1000


def test_a_normally_running_clock_is_used_unchanged(machine, clock):
    machine.advance(39 * 86_400)

    assert clock.now() == machine.now()
    assert clock.is_believed()


@pytest.mark.parametrize("instant", ["1970-01-01T00:00:20Z", "2026-11-21T18:59:58Z"])
def test_if_the_clock_was_set_back_time_continues_from_the_newest_known_time(
    machine, clock, instant
):
    machine.set(instant)
    machine.advance(90)

    assert clock.now() == after(90)
    assert clock.is_believed()


def test_a_box_that_starts_in_1970_uses_the_newest_stored_time(machine):
    machine.set("1970-01-01T00:00:20Z")
    clock = box_clock(machine)

    clock.believe(parse_instant(EVENING))
    machine.advance(1)

    assert clock.now() == after(1)


def test_a_step_back_of_under_a_second_is_followed(machine, clock):
    machine.set("2026-11-21T18:59:59.200Z")

    assert clock.now() == machine.now()


def test_nothing_may_expire_while_the_clock_is_40_days_ahead(machine, clock):
    machine.set("2036-11-21T19:00:00Z")
    for _ in range(60):
        assert clock.now() == machine.now()
        assert not clock.is_believed()
        machine.advance(86_400)

    machine.set("2026-11-21T19:00:00Z")  # earlier than the elapsed days allow
    assert clock.now() == after(60 * 86_400)
    assert clock.is_believed()


@pytest.mark.parametrize("instant", ["2036-11-21T19:00:00Z", "2026-03-01T12:00:00Z"])
@pytest.mark.parametrize("who", ["kernel", "person"])
def test_a_clock_confirmed_by_ntp_or_a_person_is_trusted_even_if_it_jumped(
    machine, clock, instant, who
):
    machine.set(instant)
    if who == "kernel":
        machine.synchronised = True
    else:
        clock.believe(machine.now())

    assert clock.is_believed()
    machine.synchronised = False
    assert clock.now() == machine.now() == parse_instant(instant)
    assert clock.is_believed()


async def rings(machine, seconds, monkeypatch):
    """Start an alarm that checks every 5 ms. Return a function that tells whether it fired."""
    monkeypatch.setattr("appliance.clock._LOOK_SECONDS", 0.005)
    rung = asyncio.Event()
    alarm = Alarm(machine, seconds, rung.set)

    async def has_rung():
        await asyncio.sleep(0.05)
        alarm.cancel()
        return rung.is_set()

    return has_rung


@pytest.mark.parametrize("seconds", [599, 600])
async def test_an_alarm_fires_when_its_time_has_come(machine, monkeypatch, seconds):
    has_rung = await rings(machine, 600, monkeypatch)

    machine.advance(seconds)

    assert await has_rung() == (seconds == 600)


@pytest.mark.parametrize(
    ("instant", "does"), [("2026-11-21T19:09:59Z", False), ("2026-11-21T19:10:00Z", True)]
)
async def test_an_alarm_fires_soon_after_the_clock_was_set_past_its_time(
    machine, monkeypatch, instant, does
):
    has_rung = await rings(machine, 600, monkeypatch)

    machine.set(instant)  # as after a sleep, in which the monotonic clock stopped

    assert await has_rung() == does
