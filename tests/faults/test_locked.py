"""Another process holds the database (F8): a bounded wait, 503, and nothing by half."""

import asyncio
import random
import subprocess
import sys

from tests.faults.checker import complaints
from tests.faults.test_disk import check_refusals, granted, until
from tests.faults.world import faulty_world
from tests.soak.scale import FULL

HELD_SECONDS = 30.0 if FULL else 6.0  # more than the 5 s for which the box waits
HOLD = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(20000)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


def hold(world):
    """A process that holds the database until its standard input ends."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(world.founded.data / "live.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    holder.stdout.readline()
    return holder


async def test_a_database_that_another_process_holds_is_waited_for_and_then_refused(tmp_path):
    async with faulty_world(tmp_path, 17) as world:
        working = asyncio.create_task(world.load.run(world.partner, world.door))
        await until(lambda: granted(world) > 20, "nothing was granted before")
        with await asyncio.to_thread(hold, world) as holder:
            await asyncio.sleep(HELD_SECONDS)
            await until(lambda: check_refusals(world.history), "nobody was refused")
            reading = await world.partner("GET", "/v1/venue")
            key = world.load._new_booking(random.Random(17))
            await world.load._book(world.partner, key)
            [(status, body)] = world.history.bookings[key].answers
            seconds = world.partner.headers["Retry-After"]
            holder.stdin.close()
        before = granted(world)
        await until(lambda: granted(world) > before + 10, "nothing was granted once it was free")
        world.load.stop()
        await working

        assert reading[0] == 200, "it no longer even read"
        assert (status, body["code"]) == (503, "UNAVAILABLE")
        assert 1 <= int(seconds) <= 60
        await world.load.ask_again(world.partner, world.door)
        await world.settle()
        found = complaints(world.history, world.rows(), world.receiver.received, final=True)
        assert found == []
        assert await asyncio.to_thread(world.box.stop) < 10
