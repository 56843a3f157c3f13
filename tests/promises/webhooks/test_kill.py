"""`kill -9` during deliveries: none is lost, and a repeated one has the same id.

500 kills in `make soak`, else 12; KILL_ROUNDS and KILL_SEED override this.
"""

import asyncio
import os
import random
import time
from collections import Counter

import pytest

from tests.journeys.partner_side import Receiver
from tests.promises.checker import complaints
from tests.promises.load import Load
from tests.promises.nursery import ForkedBox
from tests.promises.world import faulty_world
from tests.soak.scale import FULL, Progress, tell

pytestmark = [pytest.mark.slow, pytest.mark.process]

ROUNDS = int(os.environ.get("KILL_ROUNDS", "500" if FULL else "12"))
SECONDS_IN_ALL = 700.0 if FULL else 35.0
ENOUGH = ROUNDS // 2 if FULL else 5  # a busy machine may not reach all of them
BETWEEN_CHECKS = 25
IN_FLIGHT_MAX = 32  # deliveries
BATCH_MAX = 64  # outcomes in one commit


class SlowReceiver(Receiver):
    """A receiver that answers after up to 30 ms, so that kills hit every phase of a delivery."""

    def __init__(self, seed):
        super().__init__()
        self._draw = random.Random(seed)

    async def _receive(self, request):
        await asyncio.sleep(self._draw.uniform(0, 0.03))
        answer = await super()._receive(request)
        await asyncio.sleep(self._draw.uniform(0, 0.01))
        return answer


class EventfulLoad(Load):
    """Endless bookings and cancellations, with five endpoints."""

    def __init__(self, *args):
        super().__init__(*args)
        self._standing = []

    async def prepare(self, partner, door):
        await super().prepare(partner, door)
        for name in ("second", "third", "fourth"):
            endpoint = await partner.must(
                201, "POST", "/v1/webhooks", {"url": self.receiver.url(name)}
            )
            self.receiver.secrets[name] = endpoint["secret"]
            self.history.endpoints[endpoint["id"]] = endpoint["events"]

    async def _work(self, draw, partner, _door):
        while not self._stopping:
            await asyncio.sleep(draw.uniform(0, 0.08))
            if self._standing and draw.random() < 0.5:
                some = draw.randrange(len(self._standing))
                done = await self._cancel(partner, self._standing.pop(some))
            else:
                key = self._new_booking(draw)
                done = await self._book(partner, key)
                granted = self.history.bookings[key].granted
                self._standing += [one["serviceReservationId"] for one in granted]
            if not done:
                return


async def test_a_kill_loses_no_delivery_and_a_repeated_one_has_the_same_id(tmp_path):
    seed = int(os.environ.get("KILL_SEED", random.randrange(10**6)))
    print(f"\nKILL_SEED={seed}")
    draw, begun, rounds = random.Random(seed), time.monotonic(), 0
    progress = Progress("kill -9")
    async with faulty_world(
        tmp_path, seed, receiver=SlowReceiver(seed), make_load=EventfulLoad, make_box=ForkedBox
    ) as world:
        received = world.receiver.received
        while rounds < ROUNDS or not twice(received):
            if time.monotonic() - begun > SECONDS_IN_ALL:
                break
            await world.load_until(draw.uniform(0.05, 0.4), world.box.kill)
            rounds += 1
            if rounds % BETWEEN_CHECKS == 0:
                assert complaints(world.history, world.rows(), received) == []
            await world.restart()
            progress(f"{rounds} of {ROUNDS}, {len(received)} deliveries, {twice(received)} again")

        await world.load.ask_again(world.partner, world.door)
        await world.settle()
        assert complaints(world.history, world.rows(), received, final=True) == []
        print(f"{rounds} kills, {len(received)} deliveries, {twice(received)} came again")
        tell("kill -9 among deliveries", rounds, goal=ROUNDS, seed=seed)

    assert rounds >= ENOUGH
    assert twice(received) > 0, "no kill hit a delivery, so hardly anything was tried"
    assert twice(received) <= rounds * (IN_FLIGHT_MAX + BATCH_MAX)


def twice(received):
    """Return how many deliveries were repeated."""
    return len(received) - len(Counter(one.delivery for one in received))
