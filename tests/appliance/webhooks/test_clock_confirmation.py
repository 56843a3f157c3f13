"""Whose word about the time is believed: the kernel's, the box's own past, and at last nobody's."""

import pytest

from appliance.actions.beat import beat
from tests.appliance.webhooks.alarms import ManualUptime
from tests.appliance.webhooks.clocks import (
    A_YEAR_ON,
    GRACE,
    GRACED,
    conditions,
    nothing_more,
    set_clock,
)


@pytest.fixture
def settings():
    return GRACED


@pytest.mark.proves("decision: The clock is not trusted?")
async def test_a_clock_that_nobody_confirms_is_believed_ten_minutes_after_the_machines_start(
    world, receiver, clock, surroundings, change_outside, caplog
):
    surroundings.synchronised = None  # a container that may not ask
    started = ManualUptime(clock, "a boot", 5_000)
    change_outside(uptime=started)
    await world.register(receiver.url)
    await world.start()
    await world.book()

    started.advance(GRACE - 5.001)
    await nothing_more(receiver, 0)
    started.advance(0.001)

    await world.settled("delivered")
    assert caplog.text.count("a clock that may be wrong") == 1
    await world.until(lambda: conditions(world) == {"clock_unconfirmed"})


async def test_a_restart_of_the_program_alone_waits_for_nobody(
    world, receiver, uptime, surroundings
):
    surroundings.synchronised = False
    await world.register(receiver.url)
    await world.book()

    await world.start()

    await world.settled("delivered")


async def test_while_held_the_kernel_is_asked_now_and_then_and_never_afterwards(
    world, receiver, clock, surroundings, change_outside
):
    surroundings.synchronised = False
    started = ManualUptime(clock, "a boot", 5_000)
    change_outside(uptime=started)
    await world.register(receiver.url)
    await world.start()
    await world.book()
    assert 5 <= started.next_alarm <= 60

    surroundings.synchronised = True
    started.advance(60)

    await world.settled("delivered")
    assert started.next_alarm is None


async def test_a_clock_before_what_was_lived_through_is_not_believed_after_a_reboot(
    world, receiver, clock, surroundings, change_outside
):
    await world.register(receiver.url)
    await world.start()
    await world.stop()
    late = ManualUptime(clock, "second boot", 10 * GRACE * 1000)
    change_outside(uptime=late)
    surroundings.synchronised = False
    clock.set("2026-11-21T18:54:59Z")

    await world.start()
    await world.book()
    late.advance(0)
    await nothing_more(receiver, 0)
    late.advance(60)

    await world.settled("delivered")


async def test_a_time_server_that_insists_on_an_earlier_time_is_right_in_the_end(
    world, receiver, clock, uptime, surroundings
):
    await world.register(receiver.url)
    clock.set(A_YEAR_ON)
    await world.start()
    await world.stop()
    clock.set("2026-11-21T19:00:00Z")

    await world.start()
    await world.book()
    uptime.advance(GRACE - 1)
    await nothing_more(receiver, 0)
    uptime.advance(16)

    await world.settled("delivered")


async def test_the_mark_of_the_clock_is_written_once_an_hour_along_with_outcomes(
    world, receiver, uptime
):
    def mark():
        return world.rows("SELECT at FROM clock_mark")[0][0]

    await world.register(receiver.url)
    await world.start()
    first = mark()
    uptime.advance(1800)
    await world.book()
    await world.settled("delivered")
    assert mark() == first
    uptime.advance(1800)
    commits = world.database.commits

    await world.book()
    await world.settled("delivered", "delivered")
    await world.until(lambda: mark() > first)

    assert world.database.commits == commits + 2  # the booking, and what came of it


async def test_by_a_clock_far_beyond_all_that_was_written_nothing_expires_until_it_is_confirmed(
    world, receiver, clock, surroundings, change_outside
):
    await world.database.write(beat)
    clock.set("2027-01-02T19:00:00Z")
    change_outside(uptime=ManualUptime(clock, "second boot", 10 * GRACE * 1000))
    surroundings.synchronised = False

    await world.start()
    assert world.dispatcher.clock_gate.permits()
    assert not world.dispatcher.clock_gate.may_expire()
    surroundings.synchronised = True
    set_clock(clock, surroundings, "2027-01-02T19:00:01Z")

    assert world.dispatcher.clock_gate.may_expire()
