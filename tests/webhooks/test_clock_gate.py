"""The clock gate: an untrusted clock signs nothing, and no retry is early, repeated or lost.

After a clock step the doubt survives restarts, until a time server or a person confirms the clock.
"""

import logging
from dataclasses import replace

import pytest

from appliance.alerts import drop_alert
from appliance.clock import parse_instant
from appliance.clock_gate import confirm_clock, write_heartbeat
from appliance.webhooks.dispatcher import Dispatcher
from tests.webhooks.alarms import ManualUptime
from tests.webhooks.clocks import (
    A_YEAR_BACK,
    A_YEAR_ON,
    GRACE,
    GRACED,
    due_at,
    nothing_more,
    set_clock,
)
from tests.webhooks.internet import conditions


@pytest.fixture
def settings():
    return GRACED


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("instant", [A_YEAR_ON, A_YEAR_BACK])
async def test_row_19_a_clock_that_jumps_a_year_signs_nothing_until_it_is_right_again(
    world, receiver, clock, surroundings, caplog, instant, told
):
    await world.register(receiver.url)
    await world.start()
    await world.book()
    await world.settled("delivered")

    surroundings.synchronised = False
    set_clock(clock, surroundings, instant, told=told)
    await world.book()
    await nothing_more(receiver, 1)
    await world.until(lambda: conditions(world) == {"clock_held", "clock_leapt"})
    assert caplog.text.count("webhooks wait because the clock is not trusted") == 1
    surroundings.synchronised = True
    set_clock(clock, surroundings, "2026-11-21T19:01:00Z")

    await world.settled("delivered", "delivered")
    assert [outcome for _, outcome in world.attempts()] == ["delivered"] * 2
    times = [int(r.headers["x-service-signature"][2:12]) for r in receiver.requests]
    assert times == [parse_instant(f"2026-11-21T19:0{n}:00Z") // 1000 for n in (0, 1)]
    await world.until(lambda: conditions(world) == set())
    assert caplog.text.count("the clock is trusted again") <= 1


async def test_row_19_a_retry_in_the_hold_is_neither_early_nor_double_nor_never(
    tried_once, world, receiver, clock, uptime, surroundings
):
    surroundings.synchronised = False
    set_clock(clock, surroundings, A_YEAR_ON)
    uptime.advance(30)
    surroundings.synchronised = True
    set_clock(clock, surroundings, "2026-11-21T19:00:30Z")
    await nothing_more(receiver, 1)
    uptime.advance(29.999)
    await nothing_more(receiver, 1)
    uptime.advance(0.001)

    await world.settled("delivered")
    await nothing_more(receiver, 2)


async def test_row_19_a_step_of_thirty_seconds_holds_nothing_and_moves_what_the_wall_clock_shows(
    tried_once, world, receiver, clock, surroundings
):
    before = due_at(world)

    surroundings.synchronised = False
    set_clock(clock, surroundings, "2026-11-21T19:00:30Z")

    await world.until(lambda: due_at(world) == before + 30_000)
    await world.book()
    await world.settled("pending", "delivered")


async def test_row_19_a_box_that_boots_in_1970_waits_for_the_time_and_keeps_the_rest_of_each_wait(
    tried_once, world, receiver, clock, surroundings, change_outside
):
    await world.stop()
    rebooted = ManualUptime(clock, "second boot", 5_000)
    change_outside(uptime=rebooted)
    surroundings.synchronised = False
    clock.set("1970-01-01T00:00:20Z")

    await world.start()
    rebooted.advance(2 * GRACE)  # a clock in 1970 is never trusted
    await nothing_more(receiver, 1)
    surroundings.synchronised = True
    set_clock(clock, surroundings, "2026-11-21T19:00:20Z")
    await world.until(lambda: rebooted.next_alarm == 40)
    rebooted.advance(39.999)
    await nothing_more(receiver, 1)
    rebooted.advance(0.001)

    await world.settled("delivered")


async def test_a_clock_that_is_back_where_it_was_is_trusted_at_once_without_a_time_server(
    world, receiver, clock, surroundings
):
    surroundings.synchronised = False
    await world.register(receiver.url)
    await world.start()
    set_clock(clock, surroundings, A_YEAR_ON)
    set_clock(clock, surroundings, A_YEAR_BACK)
    await world.book()
    await nothing_more(receiver, 0)
    assert not world.dispatcher.clock_gate.may_expire()

    set_clock(clock, surroundings, "2026-11-21T19:00:00Z", told=False)
    await world.book()

    await world.settled("delivered", "delivered")
    assert world.dispatcher.clock_gate.may_expire()


async def test_a_clock_that_nobody_confirms_is_believed_ten_minutes_after_the_machines_start(
    world, receiver, clock, surroundings, change_outside, caplog
):
    surroundings.synchronised = False  # as in a container without permission
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


async def test_a_clock_that_is_not_trusted_is_one_warning_for_both_environments(
    box, clock, outside, surroundings, caplog
):
    surroundings.synchronised = False
    outside = replace(outside, uptime=ManualUptime(clock, "a boot", 5_000))
    dispatchers = [Dispatcher(environment, outside) for environment in box.environments]
    for dispatcher in dispatchers:
        await dispatcher.start()
    try:
        assert not any(dispatcher.clock_gate.permits() for dispatcher in dispatchers)
        raised = [r for r in caplog.records if r.name == "appliance.alerts"]
        assert sum(r.levelno >= logging.WARNING for r in raised) == 1
    finally:
        for dispatcher in dispatchers:
            await dispatcher.close()


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


async def test_by_a_clock_far_beyond_all_that_was_written_nothing_expires_until_it_is_confirmed(
    world, receiver, clock, surroundings, change_outside
):
    await world.database.write(write_heartbeat)
    clock.set("2027-01-02T19:00:00Z")
    change_outside(uptime=ManualUptime(clock, "second boot", 10 * GRACE * 1000))
    surroundings.synchronised = False

    await world.start()
    assert world.dispatcher.clock_gate.permits()
    assert not world.dispatcher.clock_gate.may_expire()
    surroundings.synchronised = True
    set_clock(clock, surroundings, "2027-01-02T19:00:01Z")

    assert world.dispatcher.clock_gate.may_expire()


@pytest.fixture
async def leapt(world, clock, uptime, surroundings):
    """A box that trusts a clock one year ahead, since nothing contradicted it for ten minutes."""
    surroundings.synchronised = False
    await world.start()
    set_clock(clock, surroundings, A_YEAR_ON)
    uptime.advance(GRACE)
    await world.until(lambda: conditions(world) == {"clock_leapt", "clock_unconfirmed"})
    assert world.dispatcher.clock_gate.permits()
    await world.database.write(write_heartbeat)  # a row has that time
    return world


@pytest.mark.parametrize("is_rebooted", [False, True])
async def test_no_restart_makes_a_clock_right_that_leapt(
    leapt, clock, surroundings, change_outside, is_rebooted
):
    await leapt.stop()
    if is_rebooted:
        change_outside(uptime=ManualUptime(clock, "second boot", 10 * GRACE * 1000))

    await leapt.start()
    assert leapt.dispatcher.clock_gate.permits()
    assert not leapt.dispatcher.clock_gate.may_expire()
    surroundings.synchronised = True

    assert leapt.dispatcher.clock_gate.may_expire()
    await leapt.until(lambda: conditions(leapt) == set())


def confirm_beside(tx):
    """Confirm the clock as `venuebox clock confirm` does, in another process."""
    drop_alert(tx, "clock_leapt", "")
    write_heartbeat(tx)


@pytest.mark.parametrize("where", ["portal", "command", "command while it is off"])
async def test_a_person_confirms_a_clock_that_leapt(leapt, where):
    gate, heard = leapt.dispatcher.clock_gate, []
    gate.watch(lambda: heard.append(1))
    if where == "portal":
        await leapt.database.write(confirm_clock, "staff:1")
        await leapt.until(lambda: heard == [1])
    elif where == "command":
        await leapt.database.write(confirm_beside)
        assert not gate.may_expire()
        leapt.database.look_for_changes()
        assert heard == [1]
    else:
        await leapt.stop()
        await leapt.database.write(confirm_beside)
        await leapt.start()

    assert leapt.dispatcher.clock_gate.may_expire()
    assert conditions(leapt) <= {"clock_unconfirmed"}


async def test_the_mark_is_stored_once_an_hour_when_something_is_written(world, clock, uptime):
    def stored(reader):
        return reader.value("SELECT at FROM clock_mark")

    await world.start()
    first = await world.database.read(stored)
    for seconds, later in ((1800, 0), (1800, 3_600_000)):
        uptime.advance(seconds)
        await world.database.write(confirm_clock, "staff:1")
        await world.until(lambda later=later: world.database.peek(stored) == first + later)


async def test_a_box_in_which_nobody_writes_remembers_how_long_it_ran(
    world, clock, uptime, surroundings, change_outside
):
    surroundings.synchronised = False
    await world.database.write(write_heartbeat)
    await world.start()
    uptime.advance(50 * 86_400)
    await world.stop()
    change_outside(uptime=ManualUptime(clock, "second boot", 10 * GRACE * 1000))

    await world.start()

    assert world.dispatcher.clock_gate.may_expire()
