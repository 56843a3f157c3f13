"""What a replay takes: one delivery, all dead ones, those of a period, and what it leaves alone."""

import pytest

from appliance.actions.activate_endpoint import activate_endpoint
from appliance.actions.deactivate_endpoint import deactivate_endpoint
from appliance.actions.replay_deliveries import PAGE, Selection, replay_deliveries
from appliance.errors import NotFound
from appliance.house_errors import EndpointIsInactive
from tests.faults.webhooks.replaying import about, arrived, many_dead, replay, replay_all


@pytest.mark.proves("decision: A deactivated endpoint?")
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


@pytest.mark.proves("decision: What is a replay of a delivery?")
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
