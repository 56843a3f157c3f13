"""Replays: which deliveries, how often, and changes during a replay."""

import asyncio

import pytest

from appliance.webhooks.delivery_log import (
    REPLAY_PAGE,
    Selection,
    replay_deliveries,
    replay_delivery,
)
from appliance.webhooks.endpoints import activate_endpoint, deactivate_endpoint
from appliance.webhooks.retry_policy import DELAYS_MS
from tests.webhooks.receivers import OK, an_answer

LADDER = [delay / 1000 for delay in DELAYS_MS]


async def replay(world, delivery_id):
    return await world.database.write(replay_delivery, delivery_id)


async def replay_all(world, endpoint_id, **options):
    """Replay all pages; return the number of replayed deliveries."""
    selection, progress = Selection(endpoint_id, **options), None
    while progress is None or not progress.done:
        progress = await world.database.write(replay_deliveries, selection, progress)
    return progress.replayed


@pytest.fixture
async def failed_once(world, receiver):
    """Return (endpoint, request) of a delivery that failed once; later attempts succeed."""
    endpoint, _ = await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    await world.start()
    await world.book()
    [request] = await receiver.got(1)
    await world.recorded(1)
    return endpoint, request


async def test_replaying_a_delivery_with_a_pending_retry_makes_one_attempt(
    world, receiver, timer, failed_once
):
    _, request = failed_once
    receiver.answers = [an_answer(500)]
    timer.advance(60)
    await world.recorded(2)

    assert await replay(world, request.id)
    await world.settled("delivered")
    timer.advance(24 * 3600)
    await asyncio.sleep(0.05)

    assert [r.id for r in receiver.requests] == [request.id] * 3
    assert world.rows("SELECT count(*), sum(replays) FROM delivery") == [(1, 1)]
    assert world.attempts() == [(1, "http_500"), (2, "http_500"), (3, "delivered")]


async def test_double_clicking_replay_sends_once(world, receiver):
    await world.register(receiver.url)
    await world.start()
    await world.book()
    [request] = await receiver.got(1)
    await world.settled("delivered")
    receiver.answering.clear()

    clicks = [await replay(world, request.id)]
    await receiver.got(2)
    clicks += await asyncio.gather(*(replay(world, request.id) for _ in range(5)))
    receiver.answering.set()
    await world.settled("delivered")
    await asyncio.sleep(0.05)

    assert clicks == [True] + [False] * 5
    assert len(receiver.requests) == 2
    assert receiver.most_at_once == 1


@pytest.mark.parametrize(
    ("retry", "outcomes"),
    [
        (an_answer(503), ["http_500", "http_503", "delivered"]),
        (OK, ["http_500", "delivered"]),  # the replay has nothing left to do
    ],
    ids=["fails", "succeeds"],
)
async def test_a_replay_during_an_attempt_starts_after_it(
    world, receiver, timer, failed_once, retry, outcomes
):
    _, request = failed_once
    receiver.answers = [retry]
    receiver.answering.clear()
    timer.advance(60)
    await receiver.got(2)

    assert await replay(world, request.id)
    assert not await replay(world, request.id)
    receiver.answering.set()

    await world.settled("delivered")
    await asyncio.sleep(0.05)
    assert [outcome for _, outcome in world.attempts()] == outcomes
    assert receiver.most_at_once == 1


async def test_a_replayed_delivery_gets_the_whole_retry_schedule_again(
    world, receiver, timer, failed_once
):
    endpoint, request = failed_once
    receiver.always = an_answer(500)
    for number, seconds in enumerate(LADDER, 2):
        timer.advance(seconds)
        await world.recorded(number)
    await world.settled("dead")

    assert await replay_all(world, endpoint.id) == 1
    await world.recorded(7)
    for number, seconds in enumerate(LADDER, 8):
        await world.until(lambda: timer.next_alarm is not None)
        assert timer.next_alarm == pytest.approx(seconds, abs=0.01)
        timer.advance(seconds)
        await world.recorded(number)

    await world.settled("dead")
    assert [n for n, _ in world.attempts()] == list(range(1, 13))
    assert {r.id for r in receiver.requests} == {request.id}
    assert timer.next_alarm is None


async def test_a_delivery_cancelled_with_its_endpoint_arrives_after_a_replay(world, receiver):
    endpoint, _ = await world.register(receiver.url)
    await world.book(3)
    await world.database.write(deactivate_endpoint, endpoint.id)
    await world.start()

    await world.database.write(activate_endpoint, endpoint.id)
    assert await replay_all(world, endpoint.id) == 0
    assert await replay_all(world, endpoint.id, states=("cancelled",)) == 3

    await world.settled(*["delivered"] * 3)


def many_dead(tx, endpoint_id, count):
    """Insert dead deliveries of yesterday's test events."""
    for _ in range(count):
        seq = tx.insert("event", {"type": "webhook.test", "occurred_at": tx.now - 86_400_000})
        tx.insert("delivery", {"id": tx.new_id(), "endpoint_id": endpoint_id, "event_seq": seq,
                               "state": "dead", "attempts": 6, "due_at": tx.now,
                               "finished_at": tx.now})  # fmt: skip


@pytest.mark.slow
async def test_ten_thousand_replays_are_queued_by_page_and_delay_no_new_event(world, receiver):
    endpoint, _ = await world.register(receiver.url)
    await world.database.write(many_dead, endpoint.id, 10_000)
    receiver.delay = 0.02
    await world.start()
    changed = []

    selection, progress = Selection(endpoint.id), None
    while progress is None or not progress.done:
        before = 0 if progress is None else progress.replayed
        progress = await world.database.write(replay_deliveries, selection, progress)
        changed.append(progress.replayed - before)
    await receiver.got(20)
    behind = []
    for _ in range(5):
        [fresh] = await world.book()
        seen = len(receiver.requests)
        await world.until(lambda fresh=fresh: fresh in ids_at(receiver))
        behind.append(ids_at(receiver).index(fresh) - seen)

    assert progress.replayed == 10_000
    assert max(changed) <= REPLAY_PAGE
    assert max(behind) <= 16  # deliveries in flight, and as many that ended in the meantime
    assert world.rows("SELECT count(*) FROM delivery WHERE state = 'pending'")[0][0] > 5_000


def ids_at(receiver):
    return [request.reservation["serviceReservationId"] for request in receiver.requests]
