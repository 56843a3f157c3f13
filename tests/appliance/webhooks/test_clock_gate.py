"""The clock gate: nothing is signed by an implausible clock, and no retry is early, double or lost.

Row 19 of the fault table.
"""

import asyncio

import pytest

from appliance.actions.beat import beat
from appliance.clock import parse_instant
from appliance.store.conditions import list_conditions
from tests.appliance.webhooks.conftest import ManualUptime
from tests.appliance.webhooks.receivers import an_answer
from tests.conftest import with_settings

A_YEAR_ON, A_YEAR_BACK = "2027-11-21T19:00:00Z", "2025-11-21T19:00:00Z"
GRACE = 600


@pytest.fixture
def settings():
    return with_settings(
        webhooks={
            "allow_networks": ("127.0.0.0/8",), "allow_http": True,
            "clock_grace_minutes": GRACE // 60,
        }
    )  # fmt: skip


def conditions(world):
    return {c.name for c in world.database.peek(list_conditions)}


async def nothing_more(receiver, count):
    await asyncio.sleep(0.05)
    assert len(receiver.requests) == count


def due_at(world):
    [(instant,)] = world.rows("SELECT due_at FROM delivery")
    return instant


def set_clock(clock, surroundings, instant, *, told=True):
    """The clock is set; the kernel tells whoever asked to be told."""
    clock.set(instant)
    for tell in list(surroundings.watching_clock) if told else []:
        tell()


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
    await world.until(lambda: conditions(world) == {"clock_held"})
    assert caplog.text.count("webhooks wait, for the clock is not trusted") == 1
    surroundings.synchronised = True
    set_clock(clock, surroundings, "2026-11-21T19:01:00Z")

    await world.settled("delivered", "delivered")
    assert [outcome for _, outcome in world.attempts()] == ["delivered"] * 2
    times = [int(r.headers["x-service-signature"][2:12]) for r in receiver.requests]
    assert times == [parse_instant(f"2026-11-21T19:0{n}:00Z") // 1000 for n in (0, 1)]
    await world.until(lambda: conditions(world) == set())
    assert caplog.text.count("the clock is trusted again") <= 1


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
