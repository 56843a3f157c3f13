"""The clock gate: nothing is signed by an implausible clock, and no retry is early, double or lost.

Row 19 of the fault table.
"""

import pytest

from appliance.clock import parse_instant
from appliance.webhooks.waits import settle_waits
from tests.appliance.webhooks.alarms import ManualUptime
from tests.appliance.webhooks.clocks import (
    A_YEAR_BACK,
    A_YEAR_ON,
    GRACE,
    GRACED,
    conditions,
    due_at,
    nothing_more,
    set_clock,
)
from tests.appliance.webhooks.receivers import an_answer


@pytest.fixture
def settings():
    return GRACED


@pytest.mark.proves("decision: The clock is not trusted?", "G8")
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
    assert caplog.text.count("webhooks wait, for the clock is not trusted") == 1
    surroundings.synchronised = True
    set_clock(clock, surroundings, "2026-11-21T19:01:00Z")

    await world.settled("delivered", "delivered")
    assert [outcome for _, outcome in world.attempts()] == ["delivered"] * 2
    times = [int(r.headers["x-service-signature"][2:12]) for r in receiver.requests]
    assert times == [parse_instant(f"2026-11-21T19:0{n}:00Z") // 1000 for n in (0, 1)]
    await world.until(lambda: conditions(world) == set())
    assert caplog.text.count("the clock is trusted again") <= 1


@pytest.mark.proves("decision: The clock is not trusted?")
async def test_row_19_a_retry_in_the_hold_is_neither_early_nor_double_nor_never(
    world, receiver, clock, uptime, surroundings
):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    await world.start()
    await world.book()
    await world.recorded(1)

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
    world, receiver, clock, surroundings
):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    await world.start()
    await world.book()
    await world.recorded(1)
    before = due_at(world)

    surroundings.synchronised = False
    set_clock(clock, surroundings, "2026-11-21T19:00:30Z")

    await world.until(lambda: due_at(world) == before + 30_000)
    await world.book()
    await world.settled("pending", "delivered")


async def test_row_19_a_box_that_boots_in_1970_waits_for_the_time_and_keeps_the_rest_of_each_wait(
    world, receiver, clock, surroundings, change_outside
):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    await world.start()
    await world.book()
    await world.recorded(1)
    await world.stop()
    rebooted = ManualUptime(clock, "second boot", 5_000)
    change_outside(uptime=rebooted)
    surroundings.synchronised = False
    clock.set("1970-01-01T00:00:20Z")

    await world.start()
    rebooted.advance(2 * GRACE)  # no grace makes 1970 plausible
    await nothing_more(receiver, 1)
    surroundings.synchronised = True
    set_clock(clock, surroundings, "2026-11-21T19:00:20Z")
    await world.until(lambda: rebooted.next_alarm == 40)
    rebooted.advance(39.999)
    await nothing_more(receiver, 1)
    rebooted.advance(0.001)

    await world.settled("delivered")


async def test_row_19_what_fell_due_while_the_box_was_off_goes_out_once_the_time_is_known(
    world, receiver, clock, surroundings, change_outside
):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    await world.start()
    await world.book()
    await world.recorded(1)
    await world.stop()
    change_outside(uptime=ManualUptime(clock, "second boot", 5_000))
    clock.set("1970-01-01T00:00:20Z")
    await world.start()
    await nothing_more(receiver, 1)

    set_clock(clock, surroundings, "2026-11-21T23:00:00Z")

    await world.settled("delivered")
    assert len(receiver.requests) == 2


async def test_endless_steps_of_many_retries_are_followed_in_small_transactions(
    world, receiver, clock, surroundings
):
    endpoint, _ = await world.register(receiver.url)
    await world.start()

    def many(tx):
        tx.execute("INSERT INTO event (seq, type, occurred_at) VALUES (1, 'webhook.test', 0)")
        for n in range(1200):
            tx.insert(
                "delivery",
                {"id": tx.new_id(), "endpoint_id": endpoint.id, "event_seq": 1, "attempts": 1,
                 "due_at": tx.now + n, "due_boot": "first boot", "due_uptime": 2_000_000 + n},
            )  # fmt: skip

    await world.database.write(many)
    commits = world.database.commits
    set_clock(clock, surroundings, "2026-11-21T20:00:00Z")

    await world.until(lambda: world.database.commits == commits + 4)  # three batches, the mark
    assert world.rows(
        "SELECT min(due_at - due_uptime), max(due_at - due_uptime) FROM delivery"
    ) == [(parse_instant("2026-11-21T20:00:00Z") - 1_000_000,) * 2]


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


async def test_a_clock_that_leaps_while_waits_are_counted_is_not_the_one_that_is_remembered(
    world, receiver, clock, surroundings, monkeypatch
):
    async def settle_and_leap(*what):
        await settle_waits(*what)
        clock.set(A_YEAR_ON)

    surroundings.synchronised = False
    await world.register(receiver.url)
    monkeypatch.setattr("appliance.webhooks.clock_gate.settle_waits", settle_and_leap)
    await world.start()
    await world.stop()
    monkeypatch.undo()

    await world.start()
    await world.book()

    await nothing_more(receiver, 0)
    assert conditions(world) == {"clock_held", "clock_leapt"}
