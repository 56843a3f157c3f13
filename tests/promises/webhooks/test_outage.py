"""After a shutdown or a full disk, queued events are delivered in order."""

import contextlib

import apsw
import pytest

from appliance.core.errors import Unavailable
from appliance.webhooks.client import Budgets
from tests.soak.scale import FULL, Progress
from tests.webhooks.conftest import a_reservation
from tests.webhooks.receivers import an_answer

ENDPOINTS = 5
LATENCY = 0.02
OVERTAKEN_AT_MOST = 60  # deliveries in flight, or made while this process was busy
PATIENCE = 600.0 if FULL else 10.0


def book_many(tx, first, count):
    for number in range(first, first + count):
        a_reservation(tx, number, access_code=None)  # 10,000 random codes would contain duplicates


def pending(world):
    return world.rows("SELECT 1 FROM delivery WHERE state = 'pending' LIMIT 1")


@pytest.mark.parametrize(
    "events", [100, pytest.param(10_000 if FULL else 300, marks=pytest.mark.slow)]
)
async def test_deliveries_queued_while_the_box_was_off_are_sent_without_delaying_new_events(
    world, open_receiver, change_outside, events
):
    change_outside(budgets=Budgets())
    receivers = [await open_receiver() for _ in range(ENDPOINTS)]
    for receiver in receivers:
        receiver.delay = LATENCY
        await world.register(receiver.url)
    for first in range(0, events, 200):
        await world.database.write(book_many, first, min(200, events - first))
    world.clock.advance(3 * 3600)
    progress = Progress("drain")

    def sent():
        return [len(receiver.requests) for receiver in receivers]

    await world.start()
    fresh = []
    for part in range(1, 6):
        await world.until(lambda part=part: min(sent()) > events * part / 8, seconds=PATIENCE)
        reservation_id = await world.database.write(a_reservation, events + part)
        before = sent()  # deliveries sent during the write are in order
        fresh.append((reservation_id, before))
        progress(f"{sum(before)} of {events * ENDPOINTS}")
    await world.until(lambda: not pending(world), seconds=PATIENCE)

    for place, receiver in enumerate(receivers):
        told = [request.reservation["serviceReservationId"] for request in receiver.requests]
        assert len(told) == len(set(told)) == events + len(fresh)
        assert receiver.most_at_once <= 6
        for reservation_id, before in fresh:
            assert told.index(reservation_id) - before[place] <= OVERTAKEN_AT_MOST


async def test_a_new_event_is_not_sent_before_an_older_one_of_the_same_reservation(
    world, receiver, change_outside
):
    change_outside(budgets=Budgets())
    receiver.delay = 0.01
    receiver.answering.clear()
    await world.register(receiver.url)
    await world.database.write(book_many, 0, 60)
    last = await world.database.write(a_reservation, 60)
    world.clock.advance(3 * 3600)
    await world.start()
    await receiver.got(6)

    await world.announce("reservation.cancelled", last)
    other = await world.database.write(a_reservation, 61)
    receiver.answering.set()
    await world.until(lambda: not pending(world))

    told = [(r.body["type"], r.reservation["serviceReservationId"]) for r in receiver.requests]
    assert len(told) == len(set(told)) == 63
    created = told.index(("reservation.created", last))
    assert told.index(("reservation.created", other)) < created
    assert created < told.index(("reservation.cancelled", last))


async def test_on_a_full_disk_results_stay_in_memory_and_no_deliveries_are_sent(
    world, receiver, monkeypatch
):
    monkeypatch.setattr("appliance.webhooks.recorder._AGAIN_SECONDS", 0.05)
    await world.register(receiver.url)
    receiver.always = an_answer(200, body=b"x" * 1000)
    await world.start()
    await world.book()
    await world.settled("delivered")
    receiver.answering.clear()
    await world.book(6)
    await receiver.got(7)
    fill_the_disk(world)
    receiver.answering.set()

    await world.until(lambda: world.dispatcher._is_stuck)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await world.book(customer_name="x" * 5000)
    assert world.rows("SELECT count(*) FROM reservation") == [(7,)]
    assert "pending" in world.states()
    assert len(receiver.requests) == 7
    world.database._writer_connection.execute("PRAGMA max_page_count = 1000000")

    await world.settled(*["delivered"] * 7)
    assert len(receiver.requests) == 7
    await world.book()
    await world.settled(*["delivered"] * 8)
    await world.until(lambda: not world.dispatcher._is_stuck)


def fill_the_disk(world):
    """Limit the file size, so that SQLite reports FULL as on a full volume."""
    connection = world.database._writer_connection
    connection.execute("CREATE TABLE filler (content BLOB)")
    connection.execute(f"PRAGMA max_page_count = {connection.pragma('page_count')}")
    with contextlib.suppress(apsw.FullError):
        while True:
            connection.execute("INSERT INTO filler VALUES (zeroblob(4000))")
