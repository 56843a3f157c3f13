"""Deliveries sent once more, whatever else happens to them (rows 18 and 24)."""

import asyncio

import pytest

from appliance.actions.activate_endpoint import activate_endpoint
from appliance.actions.deactivate_endpoint import deactivate_endpoint
from tests.appliance.webhooks.receivers import OK, an_answer
from tests.faults.webhooks.replaying import LADDER, die, replay, replay_all


async def test_row_24_a_replay_while_a_retry_is_pending_is_one_attempt_of_the_same_row(
    world, receiver, uptime
):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500), an_answer(500)]
    await world.start()
    await world.book()
    [request] = await receiver.got(1)
    await world.recorded(1)
    uptime.advance(60)
    await world.recorded(2)

    assert await replay(world, request.id)
    await world.settled("delivered")
    uptime.advance(24 * 3600)
    await asyncio.sleep(0.05)

    assert [r.id for r in receiver.requests] == [request.id] * 3
    assert world.rows("SELECT count(*), sum(replays) FROM delivery") == [(1, 1)]
    assert world.attempts() == [(1, "http_500"), (2, "http_500"), (3, "delivered")]


@pytest.mark.proves("decision: What is a replay of a delivery?")
async def test_row_24_a_double_click_sends_once(world, receiver):
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


@pytest.mark.proves("decision: What is a replay of a delivery?")
async def test_row_24_a_replay_during_a_retry_follows_it_and_never_joins_it(
    world, receiver, uptime
):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500), an_answer(503), OK]
    await world.start()
    await world.book()
    [request] = await receiver.got(1)
    await world.recorded(1)
    receiver.answering.clear()
    uptime.advance(60)
    await receiver.got(2)

    assert await replay(world, request.id)
    assert not await replay(world, request.id)
    receiver.answering.set()

    await world.settled("delivered")
    assert world.attempts() == [(1, "http_500"), (2, "http_503"), (3, "delivered")]
    assert receiver.most_at_once == 1


async def test_row_24_a_replay_during_an_attempt_that_succeeds_has_what_it_wanted(
    world, receiver, uptime
):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    await world.start()
    await world.book()
    [request] = await receiver.got(1)
    await world.recorded(1)
    receiver.answering.clear()
    uptime.advance(60)
    await receiver.got(2)

    await replay(world, request.id)
    receiver.answering.set()

    await world.settled("delivered")
    await asyncio.sleep(0.05)
    assert len(receiver.requests) == 2


async def test_row_24_a_replay_of_what_was_never_tried_changes_nothing(world, receiver):
    await world.register(receiver.url)
    await world.book()
    [(delivery_id,)] = world.rows("SELECT id FROM delivery")

    assert not await replay(world, delivery_id)
    await world.start()

    await world.settled("delivered")
    assert len(receiver.requests) == 1


async def test_row_24_an_endpoint_switched_off_and_on_during_an_attempt_gets_no_second_at_once(
    world, receiver
):
    endpoint, _ = await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    receiver.answering.clear()
    await world.start()
    await world.book()
    [request] = await receiver.got(1)

    await world.database.write(deactivate_endpoint, endpoint.id)
    await world.database.write(activate_endpoint, endpoint.id)
    assert await replay(world, request.id)
    receiver.answering.set()

    await world.settled("delivered")
    assert receiver.most_at_once == 1
    assert [r.id for r in receiver.requests] == [request.id] * 2


async def test_row_18_of_five_endpoints_one_dead_for_15_hours_keeps_its_own_and_replays_them_all(
    world, open_receiver, uptime
):
    healthy = [await open_receiver() for _ in range(4)]
    broken = await open_receiver()
    broken.always = an_answer(503)
    for receiver in healthy:
        await world.register(receiver.url)
    endpoint, _ = await world.register(broken.url)
    await world.start()
    await world.book(6)
    await world.recorded(30)

    await world.until(lambda: world.states().count("pending") == 6)
    for number, seconds in enumerate(LADDER, 1):
        uptime.advance(seconds)
        await world.recorded(30 + 6 * number)
    assert world.states().count("dead") == 6
    assert [len(receiver.requests) for receiver in healthy] == [6] * 4
    broken.always = OK
    replayed = await replay_all(world, endpoint.id)

    assert replayed == 6
    await world.settled(*["delivered"] * 30)
    assert [len(receiver.requests) for receiver in healthy] == [6] * 4
    first, last = broken.requests[:6], broken.requests[-6:]
    assert {r.id for r in first} == {r.id for r in last}


async def test_a_replayed_delivery_has_the_whole_ladder_before_it_again(world, receiver, uptime):
    await world.register(receiver.url)
    receiver.always = an_answer(500)
    await world.start()
    await world.book()
    [request] = await receiver.got(1)
    await die(world, uptime)
    await world.settled("dead")

    await replay(world, request.id)
    await world.recorded(7)
    for number, seconds in enumerate(LADDER, 8):
        await world.until(lambda: uptime.next_alarm is not None)
        assert uptime.next_alarm == pytest.approx(seconds, abs=0.01)
        uptime.advance(seconds)
        await world.recorded(number)

    await world.settled("dead")
    assert [n for n, _ in world.attempts()] == list(range(1, 13))
    assert {r.id for r in receiver.requests} == {request.id}
    assert uptime.next_alarm is None


async def test_a_replay_while_the_box_is_off_waits_for_its_start(world, receiver):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    await world.start()
    await world.book()
    await world.recorded(1)
    await world.stop()
    [(delivery_id,)] = world.rows("SELECT id FROM delivery")

    await replay(world, delivery_id)
    await world.start()

    await world.settled("delivered")
