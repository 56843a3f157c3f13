"""SIGTERM with 32 deliveries in flight (row 25): they end, the rest waits, nothing comes twice."""

import asyncio
import random
from collections import Counter

from tests.faults.webhooks.test_kill import EventfulLoad
from tests.faults.world import faulty_world
from tests.journeys.partner_side import Receiver

PROMISED_SECONDS = 10.0
EVENTS = 40


class Gate(Receiver):
    """Holds every answer back until it is opened; counts what it holds."""

    def __init__(self):
        super().__init__()
        self.held = 0

    async def _receive(self, request):
        self.held += 1
        try:
            return await super()._receive(request)
        finally:
            self.held -= 1


async def test_a_stop_with_32_in_flight_waits_for_them_and_leaves_the_rest_for_later(tmp_path):
    gate = Gate()
    async with faulty_world(tmp_path, 1, receiver=gate, make_load=EventfulLoad) as world:
        gate.open.clear()
        draw = random.Random(1)
        for _ in range(EVENTS):
            await world.load._book(world.partner, world.load._new_booking(draw))
        for endpoint_id, types in world.history.endpoints.items():
            if len(types) == 1:  # it hears of arrivals only, and four slots are kept for it
                for _ in range(4):
                    body = {"endpointId": endpoint_id}
                    await world.partner.must(202, "POST", "/v1/webhooks/test", body)
        booked = len(world.history.granted_bookings())
        async with asyncio.timeout(60):
            while gate.held < 32:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.02)

        world.box.signal()
        await asyncio.sleep(0.5)
        under_way, came = gate.held, len(gate.received)
        gate.open.set()
        begun = asyncio.get_running_loop().time()
        status = await asyncio.to_thread(world.box.wait)
        took = asyncio.get_running_loop().time() - begun

        assert status == 0
        assert took < PROMISED_SECONDS
        assert (under_way, came, len(gate.received)) == (32, 32, 32)
        states = Counter(states_of(world.rows()))
        assert states == {"delivered": 32, "pending": 4 * booked + 4 - 32}

        await world.restart()
        await world.settle()
        assert set(states_of(world.rows())) == {"delivered"}
        assert set(Counter(one.delivery for one in gate.received).values()) == {1}


def states_of(rows):
    return [one["state"] for event in rows.events for one in event["deliveries"]]
