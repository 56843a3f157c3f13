"""A box that is killed, stopped or loses its disk under load: nothing acknowledged is lost.

1,000 kills in `make soak`, else 25; KILL_ROUNDS and KILL_SEED override this. Each data directory
survives 100 kills and grows. Every tenth start runs the real program; the others are forked by
tests/promises/nursery.py.
"""

import asyncio
import os
import random
import resource
import signal
import time
from collections import Counter

import pytest

from tests.journeys.box_process import STOP_SECONDS, BoxProcess
from tests.promises.checker import complaints
from tests.promises.nursery import ForkedBox
from tests.promises.world import faulty_world
from tests.soak.scale import FULL, Progress, tell

ROUNDS = int(os.environ.get("KILL_ROUNDS", "1000" if FULL else "25"))
SECONDS_IN_ALL = 1100.0 if FULL else 20.0
ENOUGH = ROUNDS // 2 if FULL else 5  # kills, however slow the machine is
OF_ONE_BOX = 100  # kills
BETWEEN_CHECKS = 10
REAL_START_EVERY = 10
SERVING_AGAIN_SECONDS = 5.0 if FULL else 30.0
TRIED = 6  # minimum of each kind of call


class MortalBox(ForkedBox):
    """A box whose every tenth start runs the real program."""

    _starts = 0

    def _launch(self, argv, log):
        self._starts += 1
        if self._starts % REAL_START_EVERY == 1:
            return BoxProcess._launch(self, argv, log)
        return super()._launch(argv, log)


async def be_killed(folder, seed, rounds, until, starts):
    """Kill a box repeatedly; return the broken promises and the number of calls."""
    draw, kills, found = random.Random(seed), 0, []
    async with faulty_world(folder, seed, make_box=MortalBox) as world:
        while not found and kills < rounds and (kills < ENOUGH or time.monotonic() < until):
            seconds, granted = draw.uniform(0.02, 0.25), min(kills, TRIED + 1)
            await world.load_until(seconds, world.box.kill, at_least=granted)
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


@pytest.mark.slow(30)
@pytest.mark.process
async def test_acknowledged_changes_survive_a_kill_at_any_moment(tmp_path):
    seed = int(os.environ.get("KILL_SEED", random.randrange(10**6)))
    until, done, sums, found, starts = time.monotonic() + SECONDS_IN_ALL, 0, Counter(), [], []
    progress = Progress(f"kill -9, seed {seed}")

    while not found and done < ROUNDS and (done < ENOUGH or time.monotonic() < until):
        folder = tmp_path / str(done)
        folder.mkdir()
        rounds = min(OF_ONE_BOX, ROUNDS - done)
        found, life = await be_killed(folder, seed + done, rounds, until, starts)
        done, sums = done + life.pop("kills"), sums + Counter(life)
        progress(f"{done} of {ROUNDS}, {dict(sums)}")

    print(f"{dict(sums)}, slowest start {max(starts):.2f} s")
    tell("kill -9 under load", done, goal=ROUNDS, seed=seed, found=found)
    assert found == [], f"KILL_SEED={seed} repeats the draws"
    assert sorted(starts)[len(starts) // 2] <= SERVING_AGAIN_SECONDS
    assert done >= ENOUGH
    assert min(sums.values()) >= (20 if FULL else TRIED // 2)


@pytest.mark.slow
@pytest.mark.process
async def test_a_disk_that_fails_under_load_stops_the_box_and_loses_nothing(tmp_path):
    """A file size limit makes writes fail like a broken disk, not like a full one."""
    async with faulty_world(tmp_path, 11) as world:

        def fail():
            limit = 1 << 15  # not the size of the WAL, which may just have been truncated
            resource.prlimit(world.box.pid, resource.RLIMIT_FSIZE, (limit, limit))
            return world.box.wait()

        assert await world.load_until(0.6, fail) == 1

        calls = (world.history.bookings, world.history.cancels, world.history.scans)
        answers = [answer for kind in calls for call in kind.values() for answer in call.answers]
        refused = {(status, body["code"]) for status, body in answers if status >= 400}
        assert refused <= {(409, "TABLE_TAKEN"), (503, "UNAVAILABLE")}
        await goes_on_without_a_loss(world)


@pytest.mark.slow
@pytest.mark.process
async def test_stopping_under_load_is_fast_and_loses_nothing_even_with_two_signals(tmp_path):
    async with faulty_world(tmp_path, random.randrange(10**6)) as world:
        world.receiver.open.clear()  # deliveries stay in flight

        def stop():
            asked = time.monotonic()
            for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
                world.box.signal(number)
                time.sleep(0.05)
            return world.box.wait(), time.monotonic() - asked

        status, took = await world.load_until(1.0, stop, at_least=TRIED)

        assert (status, world.box.complaints().count("Traceback")) == (0, 0)
        assert took < STOP_SECONDS
        left = sorted(path.name for path in world.founded.data.glob("*.db*"))
        assert left == ["live.db", "test.db"], "the log was not copied back into the file"
        assert complaints(world.history, world.rows(), world.receiver.received) == []

        world.receiver.open.set()
        await goes_on_without_a_loss(world)


async def goes_on_without_a_loss(world):
    await world.restart()
    await world.load.ask_again(world.partner, world.door)
    await world.settle()
    found = complaints(world.history, world.rows(), world.receiver.received, final=True)
    assert found == []
