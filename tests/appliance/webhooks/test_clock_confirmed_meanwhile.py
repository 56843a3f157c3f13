"""The word of a person about the clock is heard, whatever else the box is noting just then."""

import asyncio

import pytest

from appliance.actions.confirm_clock import confirm_clock
from tests.appliance.webhooks.clocks import A_YEAR_ON, GRACE, GRACED, conditions, set_clock


@pytest.fixture
def settings():
    return GRACED


@pytest.fixture
async def leapt(world, clock, uptime, surroundings, receiver):
    """A box that goes by a clock of next year: nobody contradicted it for ten minutes."""
    surroundings.synchronised = False
    world.endpoint, _ = await world.register(receiver.url)
    await world.start()
    set_clock(clock, surroundings, A_YEAR_ON)
    uptime.advance(GRACE)
    await world.until(lambda: conditions(world) == {"clock_leapt", "clock_unconfirmed"})
    return world


async def test_a_person_is_heard_while_the_trouble_of_a_receiver_is_noted(leapt):
    heard = []
    leapt.dispatcher.clock_gate.watch(lambda: heard.append(1))
    confirmed = asyncio.create_task(leapt.database.write(confirm_clock, "staff:1"))

    leapt.dispatcher._conditions.begin("endpoint_failing", "it fails", leapt.endpoint.id)
    await confirmed

    assert heard == [1]
    assert leapt.dispatcher.clock_gate.may_expire()
    await leapt.until(lambda: conditions(leapt) == {"clock_unconfirmed", "endpoint_failing"})


async def test_a_leap_that_is_just_being_noted_was_confirmed_by_nobody(
    world, clock, uptime, surroundings
):
    surroundings.synchronised = False
    await world.start()
    set_clock(clock, surroundings, A_YEAR_ON)

    world.database.look_again()
    await asyncio.sleep(0)
    world.database.look_again()

    assert world.dispatcher.clock_gate.trust.stepped_far
    await world.until(lambda: "clock_leapt" in conditions(world))
