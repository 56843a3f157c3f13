"""A place at a receiver that comes free is taken at once, as long as anything is due.

Counted, not timed: receivers answer when the test says so.
"""

import asyncio
import random

import pytest

from appliance.actions.record_attempts import record_attempts
from appliance.webhooks.client import Budgets
from appliance.webhooks.lane import WINDOW_MAX
from appliance.webhooks.picking import GUARANTEED, IN_FLIGHT_MAX
from tests.appliance.webhooks.receivers import OK

ENDPOINTS, EVENTS = 5, 40
PATIENCE = 60.0


class Held:
    """Receivers that hold each answer back until it is let go."""

    def __init__(self, receivers):
        self.receivers = receivers
        self.oldest_first = []
        self._allowed = [asyncio.Semaphore(0) for _ in receivers]
        for place, receiver in enumerate(receivers):
            receiver.always = self._when_let_go(place)

    def let_go(self, place, count=1):
        for _ in range(count):
            self._allowed[place].release()

    def waiting(self):
        """Where somebody waits for an answer."""
        return [place for place, receiver in enumerate(self.receivers) if receiver.at_once]

    def all_places_are_taken(self, answered):
        """Whether no lane with something due might start it: its window or the box is full."""
        at_once = [receiver.at_once for receiver in self.receivers]
        sent = sum(len(receiver.requests) for receiver in self.receivers)
        full = sum(max(GUARANTEED, count) for count in at_once) >= IN_FLIGHT_MAX
        return sent - sum(at_once) == answered and all(
            len(receiver.requests) == EVENTS
            or count == WINDOW_MAX
            or (full and count >= GUARANTEED)
            for receiver, count in zip(self.receivers, at_once, strict=True)
        )

    def _when_let_go(self, place):
        async def answer(writer, _request):
            self.oldest_first.append(place)
            await self._allowed[place].acquire()
            writer.write(OK)

        return answer


@pytest.fixture
async def held(world, open_receiver, change_outside):
    """Five of them, with 40 events queued for each."""
    change_outside(budgets=Budgets(total=PATIENCE))
    receivers = [await open_receiver() for _ in range(ENDPOINTS)]
    for receiver in receivers:
        await world.register(receiver.url)
    await world.book(EVENTS)
    return Held(receivers)


async def test_no_place_stays_free_while_a_delivery_is_due_in_whatever_order_answers_come(
    world, held
):
    chance = random.Random(20261121)
    await world.start()

    for answered in range(ENDPOINTS * EVENTS):
        await world.until(lambda answered=answered: held.all_places_are_taken(answered), PATIENCE)
        held.let_go(chance.choice(held.waiting()))
    await world.until(lambda: set(world.states()) == {"delivered"}, PATIENCE)

    assert [len(receiver.requests) for receiver in held.receivers] == [EVENTS] * ENDPOINTS
    assert max(receiver.most_at_once for receiver in held.receivers) <= WINDOW_MAX


async def test_lanes_with_the_same_backlog_come_to_its_end_together(world, held):
    await world.start()

    for answered in range(ENDPOINTS * (EVENTS - WINDOW_MAX)):
        await world.until(lambda answered=answered: held.all_places_are_taken(answered), PATIENCE)
        held.let_go(held.oldest_first.pop(0))
    begun = [len(receiver.requests) for receiver in held.receivers]

    assert max(begun) - min(begun) <= 2
    await world.stop(0)


async def test_a_place_that_comes_free_waits_for_no_commit(world, held, monkeypatch):
    written, write = asyncio.Event(), world.database.write

    async def slow_disk(action, *args, **kwargs):
        if action is record_attempts:
            await written.wait()
        return await write(action, *args, **kwargs)

    monkeypatch.setattr(world.database, "write", slow_disk)
    await world.start()

    for answered in range(ENDPOINTS * EVENTS // 2):
        await world.until(lambda answered=answered: held.all_places_are_taken(answered), PATIENCE)
        held.let_go(held.waiting()[answered % ENDPOINTS])
    assert set(world.states()) == {"pending"}
    written.set()
    for place in range(ENDPOINTS):
        held.let_go(place, EVENTS)
    await world.until(lambda: set(world.states()) == {"delivered"}, PATIENCE)

    assert [len(receiver.requests) for receiver in held.receivers] == [EVENTS] * ENDPOINTS


async def test_a_fresh_event_does_not_wait_for_the_backlog_when_places_come_free_one_by_one(
    world, held
):
    await world.start()
    await world.until(lambda: held.all_places_are_taken(0), PATIENCE)
    [reservation_id] = await world.book()

    for answered in range(1, 4 * ENDPOINTS + 1):
        held.let_go(held.waiting()[answered % ENDPOINTS])
        await world.until(lambda answered=answered: held.all_places_are_taken(answered), PATIENCE)

    for receiver in held.receivers:
        told = [request.reservation["serviceReservationId"] for request in receiver.requests]
        assert reservation_id in told
        assert len(told) < EVENTS / 2
    await world.stop(0)
