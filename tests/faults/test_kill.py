"""`kill -9` in the middle of load, again and again: nothing acknowledged is lost (F1).

KILL_ROUNDS=1000 KILL_SECONDS=3600 for a night of it; KILL_SEED repeats the draws of a run.
"""

import asyncio
import os
import random
import time

from tests.faults.checker import complaints
from tests.faults.world import faulty_world

ROUNDS = int(os.environ.get("KILL_ROUNDS", "10"))
SECONDS_IN_ALL = float(os.environ.get("KILL_SECONDS", "45"))
SERVING_AGAIN_SECONDS = 5.0


async def test_what_was_acknowledged_survives_being_killed_at_any_instant(tmp_path):
    seed = int(os.environ.get("KILL_SEED", random.randrange(10**6)))
    print(f"\nKILL_SEED={seed}")
    draw, begun, slowest, rounds = random.Random(seed), time.monotonic(), 0.0, 0
    async with faulty_world(tmp_path, seed) as world:
        for _ in range(ROUNDS):
            if time.monotonic() - begun > SECONDS_IN_ALL:
                break
            await world.load_until(draw.uniform(0.2, 0.8), world.box.kill)
            slowest = max(slowest, await world.restart())
            found = complaints(world.history, world.rows(), world.receiver.received)
            assert found == []
            await world.load.ask_again(world.partner, world.door)
            rounds += 1

        await world.settle()
        found = complaints(world.history, world.rows(), world.receiver.received, final=True)
        assert found == []
        assert await asyncio.to_thread(world.contacts_in_log) == []
        sums, lost = world.history.count(), world.history.lost_calls()
        print(f"{rounds} kills, answered {sums}, lost {lost}, slowest start {slowest:.2f} s")

    assert slowest <= SERVING_AGAIN_SECONDS
    assert rounds >= min(ROUNDS, 3)
    assert min(sums.values()) > 20, "hardly anything was done, so hardly anything was tried"
    assert lost > 0, "nothing was interrupted"
