"""SIGTERM under load, and a second process on the same directory (operations.md)."""

import asyncio
import random
import signal
import time

from tests.faults.checker import complaints
from tests.faults.world import faulty_world
from tests.journeys.box_process import READY_SECONDS, BoxProcess

PROMISED_SECONDS = 10.0
TRIED = 6  # of each kind of call


async def test_a_stop_under_load_is_quick_and_loses_nothing_even_when_asked_twice(tmp_path):
    seed = random.randrange(10**6)
    print(f"\nseed {seed}")
    async with faulty_world(tmp_path, seed) as world:
        world.receiver.open.clear()  # deliveries are in flight and will not end by themselves

        def stop():
            asked = time.monotonic()
            world.box.signal()
            time.sleep(0.05)
            world.box.signal()
            time.sleep(0.05)
            world.box.signal(signal.SIGINT)
            status = world.box.wait()
            return status, time.monotonic() - asked

        status, took = await world.load_until(1.0, stop, at_least=TRIED)
        print(f"left after {took:.2f} s, {world.history.count()}")

        assert (status, world.box.complaints().count("Traceback")) == (0, 0)
        assert took < PROMISED_SECONDS
        left = sorted(path.name for path in world.founded.data.glob("*.db*"))
        assert left == ["live.db", "test.db"], "the WAL was not folded into the file"
        found = complaints(world.history, world.rows(), world.receiver.received)
        assert found == []

        world.receiver.open.set()
        await world.restart()
        await world.load.ask_again(world.partner, world.door)
        await world.settle()
        found = complaints(world.history, world.rows(), world.receiver.received, final=True)
        assert found == []
        assert min(world.history.count().values()) >= TRIED


async def test_a_second_process_on_the_directory_is_refused_and_the_first_goes_on(tmp_path):
    async with faulty_world(tmp_path, 1) as world:
        second = BoxProcess(world.founded.data, log=tmp_path / "second.log")
        try:
            second.spawn("--data", str(world.founded.data), "--host", "127.0.0.1", "--port", "0")
            status = await asyncio.to_thread(second.wait, READY_SECONDS)
        finally:
            second.kill()
        sentence = second.complaints()

        assert status == 1
        assert "another venuebox already uses" in sentence
        assert sentence.count("\n") == 1
        assert second.lines == []
        await world.load_until(0.3, lambda: None)
        await world.settle()
        found = complaints(world.history, world.rows(), world.receiver.received, final=True)
        assert found == []
