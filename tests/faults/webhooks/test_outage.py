"""A box that was off while events were queued (row 16): it catches up at the receivers' pace.

What it takes compared with the ideal is judged by `make bench`; here only that it ends.
"""

import time

from appliance.webhooks.client import Budgets
from tests.appliance.webhooks.conftest import a_reservation
from tests.soak.scale import FULL, Progress

EVENTS = 10_000 if FULL else 300
ENDPOINTS = 5
LATENCY = 0.02
OVERTAKEN_AT_MOST = 60  # by what was in flight, or came while this process had other work
PATIENCE = EVENTS * ENDPOINTS * LATENCY / 32 * 3 + 30


async def test_what_waited_while_the_box_was_off_is_drained_and_a_fresh_event_passes_it(
    world, open_receiver, change_outside
):
    change_outside(budgets=Budgets())
    receivers = [await open_receiver() for _ in range(ENDPOINTS)]
    for receiver in receivers:
        receiver.delay = LATENCY
        await world.register(receiver.url)
    for first in range(0, EVENTS, 200):
        await world.database.write(book_many, first, min(200, EVENTS - first))
    progress, begun = Progress("drain"), time.monotonic()

    def sent():
        return [len(receiver.requests) for receiver in receivers]

    await world.start()
    fresh = []
    for part in range(1, 6):
        await world.until(lambda part=part: min(sent()) > EVENTS * part / 8, PATIENCE)
        reservation_id = await world.database.write(a_reservation, EVENTS + part)
        before = sent()  # what left while a busy disk wrote it overtook nothing
        fresh.append((reservation_id, before))
        progress(f"{sum(before)} of {EVENTS * ENDPOINTS}")
    await world.until(lambda: not pending(world), PATIENCE)
    took = time.monotonic() - begun

    print(f"\n{EVENTS} events to {ENDPOINTS} endpoints in {took:.1f} s")
    for place, receiver in enumerate(receivers):
        told = [request.reservation["serviceReservationId"] for request in receiver.requests]
        assert len(told) == len(set(told)) == EVENTS + len(fresh)
        assert receiver.most_at_once <= 8
        for reservation_id, before in fresh:
            assert told.index(reservation_id) - before[place] <= OVERTAKEN_AT_MOST


def book_many(tx, first, count):
    for number in range(first, first + count):
        a_reservation(tx, number, access_code=None)  # of ten thousand, two would be the same


def pending(world):
    return world.rows("SELECT 1 FROM delivery WHERE state = 'pending' LIMIT 1")


async def test_a_fresh_event_does_not_pass_an_older_one_about_the_same_reservation(
    world, receiver, change_outside
):
    change_outside(budgets=Budgets())
    receiver.delay = 0.01
    receiver.answering.clear()
    await world.register(receiver.url)
    await world.database.write(book_many, 0, 100)
    last = await world.database.write(a_reservation, 100)
    await world.start()
    await receiver.got(8)

    await world.announce("reservation.cancelled", last)
    other = await world.database.write(a_reservation, 101)
    receiver.answering.set()
    await world.until(lambda: not pending(world), PATIENCE)

    told = [(r.body["type"], r.reservation["serviceReservationId"]) for r in receiver.requests]
    assert len(told) == len(set(told)) == 103
    created = told.index(("reservation.created", last))
    assert told.index(("reservation.created", other)) < created
    assert created < told.index(("reservation.cancelled", last))
