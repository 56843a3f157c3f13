"""`kill -9` in the middle of load, again and again: nothing acknowledged is lost (F1).

1,000 kills in `make soak`, 100 in `make test`; KILL_ROUNDS and KILL_SEED choose otherwise. Each
data directory lives through 100 of them and grows. Every tenth start is one of the real program,
from the first import on; the others come from the nursery.
"""

import asyncio
import os
import random
import time
from collections import Counter

import pytest

from tests.faults.checker import complaints
from tests.faults.nursery import ForkedBox
from tests.faults.world import faulty_world
from tests.journeys.box_process import BoxProcess
from tests.soak.scale import FULL, Progress, tell

ROUNDS = int(os.environ.get("KILL_ROUNDS", "1000" if FULL else "100"))
SECONDS_IN_ALL = 1100.0 if FULL else 50.0
ENOUGH = ROUNDS // 2 if FULL else 3  # a busy machine may not come to all of them
OF_ONE_BOX = 100  # kills
BETWEEN_CHECKS = 10
REAL_START_EVERY = 10
SERVING_AGAIN_SECONDS = 5.0


class MortalBox(ForkedBox):
    """Every tenth start is that of the real program."""

    _starts = 0

    def _launch(self, argv, log):
        self._starts += 1
        if self._starts % REAL_START_EVERY == 1:
            return BoxProcess._launch(self, argv, log)
        return super()._launch(argv, log)


@pytest.mark.proves("I1", "I3", "I6")
async def test_what_was_acknowledged_survives_being_killed_at_any_instant(tmp_path):
    seed = int(os.environ.get("KILL_SEED", random.randrange(10**6)))
    begun, done, sums, found = time.monotonic(), 0, Counter(), []
    progress = Progress(f"kill -9, seed {seed}")
    slowest = []

    until = begun + SECONDS_IN_ALL
    while not found and done < ROUNDS and (time.monotonic() < until or not has_tried(done, sums)):
        folder = tmp_path / str(done)
        folder.mkdir()
        if time.monotonic() >= until:  # so busy is the machine
            until = time.monotonic() + SECONDS_IN_ALL / 2
            assert until < begun + 4 * SECONDS_IN_ALL, f"after {done} kills there is only {sums}"
        rounds = min(OF_ONE_BOX, ROUNDS - done)
        found, life = await live_and_die(folder, seed + done, rounds, until, slowest)
        done, sums = done + life.pop("kills"), sums + Counter(life)
        progress(f"{done} of {ROUNDS}, {dict(sums)}")

    print(f"{dict(sums)}, slowest start {max(slowest):.2f} s")
    tell("kill -9 under load", done, goal=ROUNDS, seed=seed, found=found)
    assert found == [], f"KILL_SEED={seed} repeats the draws"
    assert sorted(slowest)[len(slowest) // 2] <= SERVING_AGAIN_SECONDS
    assert has_tried(done, sums), "hardly anything was done, so hardly anything was tried"


def has_tried(kills, sums):
    """Whether enough was done among enough kills."""
    return kills >= ENOUGH and min(sums.values(), default=0) > 20


async def live_and_die(folder, seed, rounds, until, starts):
    """One data directory through so many kills: what is wrong with it, and what it did."""
    draw, kills, found = random.Random(seed), 0, []
    async with faulty_world(folder, seed, make_box=MortalBox) as world:
        while not found and kills < rounds and time.monotonic() < until:
            await world.load_until(draw.uniform(0.02, 0.25), world.box.kill)
            kills += 1
            starts.append(await world.restart())
            if kills % BETWEEN_CHECKS == 0:
                found = complaints(world.history, world.rows(), world.receiver.received)
                await world.load.ask_again(world.partner, world.door)
        if not found:
            await world.load.ask_again(world.partner, world.door)
            await world.settle()
            found = complaints(world.history, world.rows(), world.receiver.received, final=True)
        leaked = await asyncio.to_thread(world.contacts_in_log)
        found += [f"I10: {one} is in the log" for one in leaked]
        return found, {"kills": kills, "lost": world.history.lost_calls(), **world.history.count()}
