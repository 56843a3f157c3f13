"""The retry schedule in virtual time, across restarts and clock changes."""

import asyncio
from itertools import pairwise

import pytest

from appliance.webhooks.retry_policy import next_step
from tests.webhooks.alarms import alarm_is
from tests.webhooks.receivers import an_answer

LADDER = [60, 300, 1800, 7200, 43200]


@pytest.fixture
async def failing(world, receiver):
    """A started world with one endpoint that answers 500."""
    await world.register(receiver.url)
    receiver.always = an_answer(500)
    await world.start()
    return receiver


async def test_six_attempts_follow_the_retry_schedule_with_one_id_and_the_current_state(
    world, failing, timer
):
    [reservation_id] = await world.book()
    await failing.got(1)

    for number, wait in enumerate(LADDER, start=1):
        await world.recorded(number)
        await alarm_is(timer, wait)
        timer.advance(wait - 0.001)
        await asyncio.sleep(0.01)
        assert len(failing.requests) == number
        await world.change(reservation_id, guests=number + 2)
        timer.advance(0.001)
        await failing.got(number + 1)

    await world.settled("dead")
    requests = failing.requests
    assert len(requests) == 6
    assert len({r.id for r in requests}) == 1
    assert [int(r.headers["x-service-attempt"]) for r in requests] == [1, 2, 3, 4, 5, 6]
    assert len({r.body["occurredAt"] for r in requests}) == 1
    assert [r.reservation["guests"] for r in requests] == [2, 3, 4, 5, 6, 7]
    times = [int(r.headers["x-service-signature"][2:12]) for r in requests]
    assert [b - a for a, b in pairwise(times)] == LADDER
    assert world.attempts() == [(n, "http_500") for n in range(1, 7)]
    timer.advance(7 * 24 * 3600)
    await asyncio.sleep(0.02)
    assert len(failing.requests) == 6


async def test_the_delay_counts_from_the_end_of_the_attempt(world, receiver, timer):
    await world.register(receiver.url)
    receiver.always = an_answer(500)

    async def slowly(writer, _request):
        timer.advance(9)
        writer.write(an_answer(500))

    receiver.answers = [slowly]
    await world.start()

    await world.book()
    await world.recorded(1)

    await alarm_is(timer, 60)
    assert world.rows("SELECT duration_ms FROM attempt") == [(9000,)]


async def test_a_restart_does_not_change_the_retry_schedule(world, failing, timer):
    await world.book()
    await world.recorded(1)
    timer.advance(60)
    await world.recorded(2)
    timer.advance(100)
    await world.stop()

    timer.advance(50)
    await world.start()

    await alarm_is(timer, 150)
    timer.advance(149.999)
    await asyncio.sleep(0.02)
    assert len(failing.requests) == 2
    timer.advance(0.001)
    await failing.got(3)
    assert len({r.id for r in failing.requests}) == 1


async def test_a_retry_that_became_due_while_the_box_was_off_is_sent_once(world, failing, timer):
    await world.book()
    await world.recorded(1)
    await world.stop()

    timer.advance(24 * 3600)
    await world.start()
    await failing.got(2)
    await world.recorded(2)

    await alarm_is(timer, 300)
    assert len(failing.requests) == 2


@pytest.mark.parametrize("synchronised", [True, False])
@pytest.mark.parametrize("instant", ["2036-11-21T19:00:00Z", "1970-01-01T00:00:20Z"])
async def test_a_wrong_clock_delays_no_delivery_and_signs_with_the_machines_time(
    world, receiver, clock, instant, synchronised
):
    await world.register(receiver.url)
    clock.synchronised = synchronised
    clock.set(instant)
    await world.start()

    await world.book()

    await world.settled("delivered")
    [request] = receiver.requests
    assert request.headers["x-service-signature"].startswith(f"t={clock.now() // 1000},v1=")


@pytest.mark.parametrize(
    ("instant", "wait"),
    [
        ("2036-11-21T19:00:00Z", 0),
        ("2026-11-21T19:01:00Z", 0),
        ("2026-11-21T19:00:40Z", 20),
        ("2026-11-21T18:00:00Z", 3660),
        ("2026-11-21T06:02:00Z", 46_740),
        ("2026-11-21T05:59:00Z", 0),  # more than 13 hours
        ("1970-01-01T00:00:20Z", 0),
    ],
)
async def test_after_a_clock_change_a_retry_waits_at_most_13_hours(
    world, failing, timer, clock, instant, wait
):
    await world.book()
    await world.recorded(1)
    await alarm_is(timer, 60)

    clock.set(instant)
    await let_pass(timer, wait - 1)
    assert len(failing.requests) == 1
    await let_pass(timer, 61 if wait == 0 else 1)

    await failing.got(2)


async def let_pass(timer, seconds):
    """Advance the clock a minute at a time, as often as the real timer looks at it."""
    while seconds > 0:
        timer.advance(min(60, seconds))
        seconds -= 60
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)


async def test_a_new_event_is_sent_immediately_after_the_clock_was_set_back(world, receiver, clock):
    await world.register(receiver.url)
    await world.book()
    clock.set("2026-11-21T18:00:00Z")

    await world.start()

    await world.settled("delivered")


async def test_a_failed_older_event_does_not_delay_a_newer_one(world, tried_once):
    await world.announce("reservation.cancelled", tried_once)

    await world.settled("pending", "delivered")


def after_failures(count, draw=lambda: 0.0, charged=True):
    return next_step(count - 1, delivered=False, charged=charged, draw=draw)


@pytest.mark.parametrize(
    ("failures", "seconds", "most"),
    [(1, 60, 6), (2, 300, 30), (3, 1800, 60), (4, 7200, 60), (5, 43200, 60)],
)
def test_each_delay_is_that_of_the_contract_plus_at_most_a_tenth_or_a_minute(
    failures, seconds, most
):
    earliest = after_failures(failures)
    latest = after_failures(failures, draw=lambda: 0.999_999).wait_ms

    assert (earliest.state, earliest.attempts) == ("pending", failures)
    assert earliest.wait_ms == seconds * 1000
    assert 0.99 * most * 1000 < latest - earliest.wait_ms < most * 1000


def test_an_attempt_that_failed_because_of_the_box_does_not_advance_the_retry_schedule():
    for charged_before in range(6):
        step = next_step(charged_before, delivered=False, charged=False, draw=lambda: 0.0)

        assert step.state == "pending"
        assert step.attempts == charged_before
