"""Clock steps and suspends, which timers do not count (F12).

The kernel reports them to the clock gate, and the gate wakes the scheduler.
"""

import asyncio

import pytest

from tests.unit.jobs.keeping import World
from tests.webhooks.clocks import GRACED, set_clock

TWO_DAYS_ON = "2026-11-23T19:00:00Z"


@pytest.fixture
def settings():
    return GRACED


@pytest.fixture
async def jobs(world, box, clock):
    """A scheduler that the clock gate of a dispatcher wakes. Its timer never fires by itself."""
    dispatcher = await world.start()
    made = World(box.live, clock, dispatcher.clock_gate.may_expire)
    dispatcher.clock_gate.watch(made.scheduler.wake)
    yield made
    await made.scheduler.close()


async def status_becomes(jobs, id_, status):
    async with asyncio.timeout(60):
        while (await jobs.get(id_)).status != status:  # noqa: ASYNC110 - the job commits
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("is_asleep", [False, True])
async def test_when_the_clock_is_set_ahead_or_the_machine_slept_the_evening_ends_at_once(
    jobs, clock, uptime, surroundings, is_asleep
):
    id_ = await jobs.enter()
    await jobs.start()
    assert jobs.timer.seconds > 8 * 3600

    if is_asleep:
        uptime.now += 48 * 3_600_000  # timers do not count it
    set_clock(clock, surroundings, TWO_DAYS_ON)

    await status_becomes(jobs, id_, "completed")


async def test_an_evening_that_a_doubted_clock_could_not_end_ends_once_it_is_confirmed(
    jobs, clock, uptime, surroundings
):
    surroundings.synchronised = False
    id_ = await jobs.enter()
    await jobs.start()
    set_clock(clock, surroundings, TWO_DAYS_ON)
    await asyncio.sleep(0.05)
    await jobs.scheduler.settle()
    assert (await jobs.get(id_)).status == "confirmed"

    surroundings.synchronised = True
    uptime.advance(15)  # the gate asks the kernel again

    await status_becomes(jobs, id_, "completed")


async def test_a_retry_that_fell_due_while_the_machine_slept_goes_out_when_it_wakes(
    world, receiver, tried_once, clock, uptime, surroundings
):
    await world.until(lambda: uptime.next_alarm == 60)

    uptime.now += 3_600_000  # timers do not count it
    clock.advance(3600)
    for tell in list(surroundings.watching_clock):
        tell()

    await world.settled("delivered")
    assert len(receiver.requests) == 2
