"""A million bookings, cancellations and scans, of which nearly all want what others have (G2).

`python -m tests.soak.contended [--requests N] [--seconds S] [--seed N]`: fifty keys and eight
doors at full speed; the checker looks at I1 to I7 afterwards. Exit status 0 when they hold.
"""

import argparse
import asyncio
import gc
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.checker import complaints
from tests.soak.crowd import Crowd
from tests.soak.evening import an_evening
from tests.soak.scale import Progress, tell
from tests.soak.wire import Wire

TABLES = 600
ENDPOINTS = {"arrivals": ["reservation.checked_in"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args()
    gc.disable()  # the history only grows
    with tempfile.TemporaryDirectory(prefix="venuebox-soak-") as folder:
        done, found = asyncio.run(contend(Path(folder), chosen))
    for complaint in found[:20]:
        print(f"WRONG: {complaint}")
    tell("contended requests", done, goal=chosen.requests, seed=chosen.seed, found=found)
    return 1 if found else 0


async def contend(folder, chosen):
    """How many were answered, and what was wrong."""
    async with an_evening(folder, ENDPOINTS, TABLES) as evening:
        crowd = Crowd(evening.history, evening.tables, evening.tonight, chosen.seed,
                      goal=chosen.requests, until=time.monotonic() + chosen.seconds)  # fmt: skip
        wires = [Wire(evening.box.address, key) for key in evening.keys for _ in range(2)]
        doors = [Wire(evening.box.address, token) for token in evening.doors]
        begun = time.monotonic()
        telling = asyncio.create_task(say(crowd, Progress("contention")))
        await asyncio.gather(
            *(crowd.partner(f"p{n}", wires[2 * n : 2 * n + 2]) for n in range(len(evening.keys))),
            *(crowd.door(f"d{n}", wire) for n, wire in enumerate(doors)),
        )
        took = time.monotonic() - begun
        telling.cancel()
        for wire in (*wires, *doors):
            wire.close()
        left = await evening.settle()
        print(
            f"{crowd.done:,} requests in {took:.0f} s, {evening.history.count()} granted,"
            f" {crowd.hung_up} times hung up"
        )
        rows = await asyncio.to_thread(evening.rows)
        found = complaints(evening.history, rows, evening.receiver.received, final=left == 0)
        return crowd.done, found + crowd.strange


async def say(crowd, progress):
    while True:
        await asyncio.sleep(1)
        progress(f"{crowd.done:,} requests, {crowd.history.count()}")


if __name__ == "__main__":
    sys.exit(main())
