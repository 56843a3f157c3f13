"""A clock that leapt stays in doubt over restarts, until a time server or a person confirms it."""

import pytest

from appliance.actions.beat import beat
from appliance.actions.confirm_clock import confirm_clock
from appliance.store.conditions import drop_condition
from tests.appliance.webhooks.alarms import ManualUptime
from tests.appliance.webhooks.clocks import A_YEAR_ON, GRACE, GRACED, conditions, set_clock

LONG = 50 * 86_400


@pytest.fixture
def settings():
    return GRACED


@pytest.fixture
async def leapt(world, clock, uptime, surroundings):
    """A box that goes by a clock of next year: nobody contradicted it for ten minutes."""
    surroundings.synchronised = False
    await world.start()
    set_clock(clock, surroundings, A_YEAR_ON)
    uptime.advance(GRACE)
    await world.until(lambda: conditions(world) == {"clock_leapt", "clock_unconfirmed"})
    assert world.dispatcher.clock_gate.permits()
    await world.database.write(beat)  # something is written at that time
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


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_a_person_confirms_it_beside_the_box_or_while_it_is_off(leapt, is_stopped):
    def confirm(tx):
        drop_condition(tx, "clock_leapt", "")
        beat(tx)

    heard = []
    leapt.dispatcher.clock_gate.watch(lambda: heard.append(1))
    if is_stopped:
        await leapt.stop()
    await leapt.database.write(confirm)
    if is_stopped:
        await leapt.start()
    else:
        assert not leapt.dispatcher.clock_gate.may_expire()
        leapt.database.look_again()
        assert heard == [1]

    assert leapt.dispatcher.clock_gate.may_expire()
    assert conditions(leapt) <= {"clock_unconfirmed"}


async def test_an_owner_confirms_it_in_the_portal(leapt):
    heard = []
    leapt.dispatcher.clock_gate.watch(lambda: heard.append(1))

    await leapt.database.write(confirm_clock, "staff:1")

    await leapt.until(lambda: heard == [1])
    assert leapt.dispatcher.clock_gate.may_expire()
    assert conditions(leapt) <= {"clock_unconfirmed"}


async def test_another_commands_poke_confirms_nothing(leapt):
    leapt.database.look_again()

    assert not leapt.dispatcher.clock_gate.may_expire()


async def test_a_machine_that_ran_on_did_not_leap_although_nobody_wrote_for_months(
    world, uptime, surroundings
):
    surroundings.synchronised = False
    await world.database.write(beat)
    await world.start()
    uptime.advance(LONG)
    await world.stop()

    await world.start()

    assert world.dispatcher.clock_gate.may_expire()
    assert "clock_leapt" not in conditions(world)


async def test_a_box_in_which_nobody_writes_remembers_how_long_it_ran(
    world, clock, uptime, surroundings, change_outside
):
    surroundings.synchronised = False
    await world.database.write(beat)
    await world.start()
    uptime.advance(LONG)
    await world.stop()
    change_outside(uptime=ManualUptime(clock, "second boot", 10 * GRACE * 1000))

    await world.start()

    assert world.dispatcher.clock_gate.may_expire()
