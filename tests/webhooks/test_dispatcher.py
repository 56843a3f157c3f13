"""From a commit to a recorded attempt, over real sockets."""

import asyncio

from msgspec.structs import replace

from appliance.webhooks.client import Budgets
from appliance.webhooks.deliveries import DueDelivery
from appliance.webhooks.delivery_log import drop_deliveries, find_deliveries

FULL = Budgets()


async def test_all_deliveries_of_one_event_have_the_same_unique_event_id(world, open_receiver):
    receivers = await open_receiver(), await open_receiver()
    for receiver in receivers:
        await world.register(receiver.url)
    await world.start()

    [reservation_id] = await world.book()
    await world.announce("reservation.cancelled", reservation_id)

    await world.settled(*["delivered"] * 4)
    first, second = (
        {r.headers["x-service-event"]: r.headers["x-service-event-id"] for r in each.requests}
        for each in receivers
    )
    assert first == second
    assert len(set(first.values())) == 2


def test_an_event_number_reused_after_a_restore_is_a_different_event():
    before = DueDelivery(1, "d", 0, "reservation.created", "r", 1000, event_seq=7)
    assert replace(before, seq=9, id="e", attempts=3, replays=1).event_id == before.event_id
    others = {"occurred_at": 1001}, {"reservation_id": "s"}, {"event_type": "webhook.test"}
    assert all(replace(before, **other).event_id != before.event_id for other in others)


async def test_deliveries_queued_before_the_start_are_sent_oldest_first(world, receiver):
    await world.register(receiver.url)
    ids = await world.book(30)
    receiver.delay = 0.002

    await world.start()

    await world.settled(*["delivered"] * 30)
    arrived = [r.reservation["serviceReservationId"] for r in receiver.requests]
    assert sorted(arrived) == sorted(ids)
    assert all(abs(arrived.index(id_) - i) < 6 for i, id_ in enumerate(ids))
    assert receiver.most_at_once == 6


async def test_new_deliveries_are_sent_after_all_old_ones_were_deleted(world, receiver):
    await world.register(receiver.url)
    await world.start()
    await world.book(3)
    await world.settled(*["delivered"] * 3)

    later = world.clock.now() + 1  # a month without a booking, so that SQLite counts from 1 again
    found = await world.database.read(find_deliveries, later)
    await world.database.write(drop_deliveries, found)
    await world.book()

    await world.settled("delivered")
    assert len(receiver.requests) == 4


async def test_events_of_one_reservation_arrive_one_after_another(world, receiver):
    await world.register(receiver.url)
    receiver.delay = 0.05
    await world.start()

    [reservation_id] = await world.book()
    await world.announce("reservation.cancelled", reservation_id)
    await world.announce("reservation.created", reservation_id)

    await world.settled("delivered", "delivered", "delivered")
    assert receiver.most_at_once == 1
    assert [r.body["type"] for r in receiver.requests] == [
        "reservation.created", "reservation.cancelled", "reservation.created",
    ]  # fmt: skip


async def test_at_most_thirty_two_deliveries_are_sent_at_once(world, open_receiver, change_outside):
    change_outside(budgets=FULL)
    receivers = [await open_receiver() for _ in range(6)]
    for receiver in receivers:
        receiver.delay = 30
        await add_endpoint(world, receiver.url)
    await world.book(20)

    await world.start()
    await world.until(lambda: sum(receiver.at_once for receiver in receivers) >= 32)
    await asyncio.sleep(0.05)

    under_way = [receiver.at_once for receiver in receivers]
    assert sum(under_way) == 32
    assert max(under_way) <= 6
    await world.stop(0)


async def add_endpoint(world, url):
    """Add an endpoint without the limit of five."""

    def copy(tx):
        secret = world.environment.keyring.wrap(b"whsec_x", tx.tokens.random_bytes(12))
        values = {"id": tx.new_id(), "url": url, "secret": secret, "created_at": tx.now}
        tx.insert("endpoint", {**values, "events": '["reservation.created"]', "active": 1})

    await world.database.write(copy)
