"""Many at once: partners and doors in contention for few tables, or a whole busy evening.

`python -m tests.soak.mixed contended`: fifty keys and eight doors at full speed, a million
requests. `python -m tests.soak.mixed evening`: for ten minutes fifty keys, eight doors with their
feeds, five endpoints, twenty staff, five hundred guests' pages, and five hundred connections that
never finish a request; a door waits less than half a second for 99 of 100 scans. The checker
looks at I1 to I7 afterwards. Exit status 0 when all of it holds.
"""

import argparse
import asyncio
import gc
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from tests.promises.checker import complaints
from tests.soak.crowd import Crowd
from tests.soak.evening import HOUSE, an_evening
from tests.soak.scale import Progress, tell
from tests.soak.wire import Wire

ENDPOINTS = {"all": None, "second": None, "arrivals": ["reservation.checked_in"],
             "cancels": ["reservation.cancelled"], "fifth": None}  # fmt: skip
CONTENDED = {"arrivals": ["reservation.checked_in"]}
TABLES = 120
PACE = 0.3  # seconds between two requests of a partner or a door
GUESTS, GUEST_EVERY = 500, 10.0
HOUSE_EVERY = 4.0
STALLING = 500
SCAN_SECONDS = 0.5  # p99
HALF_A_REQUEST = b"POST /v1/reservations HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


@dataclass
class Watching:
    """What the pages and the feeds received."""

    seen: Counter = field(default_factory=Counter)
    strange: list = field(default_factory=list)

    def note(self, what, status, wanted):
        self.seen[what] += 1
        if status not in wanted and len(self.strange) < 20:
            self.strange.append(f"{what} was answered {status}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["contended", "evening"])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args()
    gc.disable()  # the history only grows
    with tempfile.TemporaryDirectory(prefix="venuebox-soak-") as folder:
        if chosen.kind == "contended":
            done, found = asyncio.run(contend(Path(folder), chosen))
            tell("contended requests", done, goal=chosen.requests, seed=chosen.seed, found=found)
        else:
            done, found = asyncio.run(be_busy(Path(folder), chosen.seconds, chosen.seed))
            goal = int(chosen.seconds)
            tell("seconds of mixed load", int(done), goal=goal, seed=chosen.seed, found=found)
    for complaint in found[:20]:
        print(f"WRONG: {complaint}")
    return 1 if found else 0


async def contend(folder, chosen):
    """Return the number of answered requests, and the errors found."""
    async with an_evening(folder, CONTENDED, 600) as evening:
        crowd = Crowd(evening.history, evening.tables, evening.tonight, chosen.seed,
                      goal=chosen.requests, until=time.monotonic() + chosen.seconds)  # fmt: skip
        address, progress = evening.box.address, Progress("contention")
        wires = [[Wire(address, key) for _ in range(2)] for key in evening.keys]
        doors = [Wire(address, token) for token in evening.doors]
        telling = asyncio.create_task(say(crowd, lambda: progress(f"{crowd.done:,} requests")))
        await asyncio.gather(
            *(crowd.partner(f"p{n}", pair) for n, pair in enumerate(wires)),
            *(crowd.door(f"d{n}", wire) for n, wire in enumerate(doors)),
        )
        telling.cancel()
        for wire in (*chain(*wires), *doors):
            wire.close()
        left = await evening.settle()
        print(f"{evening.history.count()} granted, {crowd.hung_up} times hung up")
        rows = await asyncio.to_thread(evening.rows)
        found = complaints(evening.history, rows, evening.receiver.received, final=left == 0)
        return crowd.done, found + crowd.strange


async def be_busy(folder, seconds, seed):
    """Return the duration, and the errors found."""
    async with an_evening(folder, ENDPOINTS, TABLES) as evening:
        begun = time.monotonic()
        crowd = Crowd(evening.history, evening.tables, evening.tonight, seed, pace=PACE,
                      until=begun + seconds)  # fmt: skip
        watching, address, progress = Watching(), evening.box.address, Progress("mixed load")
        ears = [asyncio.create_task(listen(address, token, watching)) for token in evening.doors]

        def draw(who, number):
            return random.Random(f"{seed} {who} {number}")

        watchers = [
            *(guest(crowd, address, watching, draw("guest", n)) for n in range(GUESTS)),
            *(stall(crowd, address, watching, draw("stall", n)) for n in range(STALLING)),
            *(
                host(crowd, address, secret, watching, draw("host", n))
                for n, secret in enumerate(evening.sessions)
            ),
            say(crowd, lambda: progress(f"{crowd.history.count()}, {dict(watching.seen)}")),
        ]
        work = [
            *(
                crowd.partner(f"p{n}", [Wire(address, key) for _ in range(2)])
                for n, key in enumerate(evening.keys)
            ),
            *(crowd.door(f"d{n}", Wire(address, token)) for n, token in enumerate(evening.doors)),
        ]
        await asyncio.gather(*work, *watchers)
        took = time.monotonic() - begun
        for ear in ears:
            ear.cancel()
        await asyncio.gather(*ears, return_exceptions=True)
        left = await evening.settle()
        rows = await asyncio.to_thread(evening.rows)
        found = complaints(evening.history, rows, evening.receiver.received, final=left == 0)
        found += [*crowd.strange, *watching.strange, *judge(evening, crowd, watching, left)]
        return took, found


def judge(evening, crowd, watching, left):
    """Return the errors: too slow, or callers that did nothing."""
    for what, seconds in crowd.seconds.items():
        ordered = sorted(seconds)
        middle, high = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
        print(f"{what}: {len(ordered):,}, p50 {middle * 1000:.1f} ms, p99 {high * 1000:.1f} ms")
        if what == "scan" and high > SCAN_SECONDS:
            yield f"a door waited {high * 1000:.0f} ms for a scan (p99)"
    print(f"{evening.history.count()}, {dict(watching.seen)}")
    came = len(evening.receiver.received)
    print(f"{came:,} deliveries, {left} on their way, {crowd.hung_up} times hung up")
    if left:
        yield f"I4: {left} deliveries are still on their way"
    for what in ("guest's page", "portal's page", "stalled", "feed"):
        if watching.seen[what] < (1 if what == "feed" else HOUSE):
            yield f"hardly any {what}: too little was tried"


async def guest(crowd, address, watching, draw):
    """Keep the page of a reservation open, which asks for updates."""
    await asyncio.sleep(draw.uniform(0, GUEST_EVERY))
    wire, mine = Wire(address), None
    while not crowd.is_over:
        if mine is None or draw.random() < 0.05:
            mine = draw.choice(crowd.tonight)[1] if crowd.tonight else None
        if mine is not None:
            path = mine.removeprefix(address)
            status, _ = await wire.ask("GET", path)
            watching.note("guest's page", status, {200})
        await asyncio.sleep(GUEST_EVERY * draw.uniform(0.8, 1.2))
    wire.close()


async def host(crowd, address, secret, watching, draw):
    """Load the board, the reservations and the endpoints all evening."""
    wire = Wire(address, cookie=f"__Host-venuebox-session-{address.rpartition(':')[2]}={secret}")
    pages = "/portal/tonight", "/portal/reservations", "/portal/integrations/deliveries"
    while not crowd.is_over:
        status, _ = await wire.ask("GET", draw.choice(pages))
        watching.note("portal's page", status, {200})
        await asyncio.sleep(HOUSE_EVERY * draw.uniform(0.5, 1.5))
    wire.close()


async def stall(crowd, address, watching, draw):
    """Send half a request byte by byte until the box disconnects. Repeat."""
    host, _, port = address.removeprefix("http://").partition(":")
    await asyncio.sleep(draw.uniform(0, 5))
    while not crowd.is_over:
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(HALF_A_REQUEST)
            watching.seen["stalled"] += 1
            while not crowd.is_over and not reader.at_eof() and not writer.is_closing():
                await asyncio.sleep(draw.uniform(1, 3))
                writer.write(b"x")
            writer.transport.abort()
        except OSError:
            await asyncio.sleep(1)


async def listen(address, token, watching):
    """Follow a door's live feed until the box ends it."""
    host, _, port = address.removeprefix("http://").partition(":")
    ask = (
        f"GET /terminal/v1/events HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}"
    )
    while True:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"{ask}\r\n\r\n".encode())
        async for line in reader:
            watching.seen["feed"] += line.startswith(b"event: ")
        writer.close()


async def say(crowd, report):
    while not crowd.is_over:
        await asyncio.sleep(1)
        report()


if __name__ == "__main__":
    sys.exit(main())
