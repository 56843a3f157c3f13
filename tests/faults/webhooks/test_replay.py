"""Deliveries sent once more, whatever else happens to them (rows 18 and 24)."""

import asyncio

import pytest

from appliance.actions.activate_endpoint import activate_endpoint
from appliance.actions.deactivate_endpoint import deactivate_endpoint
from appliance.actions.replay_deliveries import PAGE, Selection, replay_deliveries
from appliance.actions.replay_delivery import replay_delivery
from appliance.errors import NotFound
from appliance.house_errors import EndpointIsInactive
from appliance.webhooks.ladder import DELAYS_MS
from tests.appliance.webhooks.receivers import OK, an_answer

LADDER = [delay / 1000 for delay in DELAYS_MS]


async def replay(world, delivery_id):
    return await world.database.write(replay_delivery, delivery_id)


async def replay_all(world, endpoint_id, **options):
    """Every page; how many were replayed."""
    selection, progress = Selection(endpoint_id, **options), None
    while progress is None or not progress.done:
        progress = await world.database.write(replay_deliveries, selection, progress)
    return progress.replayed


async def die(world, uptime, count=1):
    """Let the ladder of `count` deliveries end, each failing at each attempt."""
    await world.recorded(count)
    for number, seconds in enumerate(LADDER, 2):
        uptime.advance(seconds)
        await world.recorded(number * count)


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


async def test_row_24_a_double_click_sends_once(world, receiver):
    await world.register(receiver.url)
    await world.start()
    await world.book()
    [request] = await receiver.got(1)
    await world.settled("delivered")
    receiver.delay = 2.0

    clicks = [await replay(world, request.id)]
    await receiver.got(2)
    clicks += await asyncio.gather(*(replay(world, request.id) for _ in range(5)))
    await world.settled("delivered")
    await asyncio.sleep(0.05)

    assert clicks == [True] + [False] * 5
    assert len(receiver.requests) == 2
    assert receiver.most_at_once == 1


async def test_row_24_a_replay_during_a_retry_follows_it_and_never_joins_it(
    world, receiver, uptime
):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500), an_answer(503), OK]
    await world.start()
    await world.book()
    [request] = await receiver.got(1)
    await world.recorded(1)
    receiver.delay = 0.2
    uptime.advance(60)
    await receiver.got(2)

    assert await replay(world, request.id)
    assert not await replay(world, request.id)

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
    receiver.delay = 0.2
    uptime.advance(60)
    await receiver.got(2)

    await replay(world, request.id)

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
    receiver.delay, receiver.answers = 0.2, [an_answer(500)]
    await world.start()
    await world.book()
    [request] = await receiver.got(1)

    await world.database.write(deactivate_endpoint, endpoint.id)
    await world.database.write(activate_endpoint, endpoint.id)
    assert await replay(world, request.id)

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


async def test_an_endpoint_that_receives_nothing_is_not_replayed_to(world, receiver):
    endpoint, _ = await world.register(receiver.url)
    await world.book()
    [(delivery_id,)] = world.rows("SELECT id FROM delivery")
    await world.database.write(deactivate_endpoint, endpoint.id)

    with pytest.raises(EndpointIsInactive):
        await replay(world, delivery_id)
    with pytest.raises(EndpointIsInactive):
        await replay_all(world, endpoint.id)

    assert world.states() == ["cancelled"]


async def test_what_is_unknown_cannot_be_replayed(world):
    with pytest.raises(NotFound):
        await replay(world, "00000000-0000-4000-8000-000000000000")
    with pytest.raises(NotFound):
        await replay_all(world, "00000000-0000-4000-8000-000000000000")


async def test_what_was_cancelled_with_its_endpoint_arrives_when_it_is_replayed(world, receiver):
    endpoint, _ = await world.register(receiver.url)
    await world.book(3)
    await world.database.write(deactivate_endpoint, endpoint.id)
    await world.start()

    await world.database.write(activate_endpoint, endpoint.id)
    assert await replay_all(world, endpoint.id) == 0
    assert await replay_all(world, endpoint.id, states=("cancelled",)) == 3

    await world.settled(*["delivered"] * 3)


async def test_a_period_takes_the_events_in_it_of_that_endpoint_alone(world, open_receiver, clock):
    chosen, other = await open_receiver(), await open_receiver()
    endpoint, _ = await world.register(chosen.url)
    await world.register(other.url)
    await world.start()
    hours = []
    for _ in range(4):
        hours.append(clock.now())
        await world.book()
        clock.advance(3600)
    await world.settled(*["delivered"] * 8)
    sent = [request.id for request in await chosen.got(4)]

    replayed = await replay_all(
        world, endpoint.id, states=("delivered",), since=hours[1], until=hours[3]
    )

    assert replayed == 2
    assert {request.id for request in (await chosen.got(6))[4:]} == set(sent[1:3])
    assert len(other.requests) == 4


async def test_ten_thousand_replays_go_page_by_page_and_delay_no_fresh_event(world, receiver):
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
        await world.until(lambda fresh=fresh: arrived(receiver, fresh), 30)
        position = next(n for n, r in enumerate(receiver.requests) if about(r) == fresh)
        behind.append(position - seen)

    assert progress.replayed == 10_000
    assert max(changed) <= PAGE
    assert max(behind) <= 16  # at most what was under way, and as many that ended meanwhile
    assert world.rows("SELECT count(*) FROM delivery WHERE state = 'pending'")[0][0] > 5_000


def about(request):
    return request.reservation["serviceReservationId"]


def arrived(receiver, reservation_id):
    return any(about(request) == reservation_id for request in receiver.requests)


def many_dead(tx, endpoint_id, count):
    """Test events of yesterday that nobody took."""
    for _ in range(count):
        seq = tx.insert("event", {"type": "webhook.test", "occurred_at": tx.now - 86_400_000})
        tx.insert("delivery", {"id": tx.new_id(), "endpoint_id": endpoint_id, "event_seq": seq,
                               "state": "dead", "attempts": 6, "due_at": tx.now,
                               "due_boot": "b", "finished_at": tx.now})  # fmt: skip
