"""What was queued while the box was off, sent when it is on again. A part of `dispatcher.py`.

The ideal is N·L/C: N deliveries, each taking a place for the L that its receiver takes to
answer, with C places over all endpoints.
"""

import asyncio
import socket
import statistics
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from appliance.webhooks import endpoint_queue
from appliance.webhooks.dispatcher import IN_FLIGHT_MAX
from bench.deliveries import Sender, Target, a_sender
from bench.sinks import Sinks
from bench.webhooks import SAMPLE, post

LATENCY = 0.020
_SAMPLE_EVERY = 0.25
_PAST_ROWS, _PAST_BYTES = 5_000, 8_000  # more than the page cache of the store holds


async def drain(folder: Path, sinks: Sinks, events: int) -> list[Target]:
    """Twice on the same box, with four fresh bookings a second meanwhile; then a bare client."""
    sinks.answer_after(LATENCY)
    real = _lone_latency(sinks.urls[0])
    sinks.take()
    runs = []
    async with a_sender(folder, sinks.urls) as sender:
        await sender.environment.database.write(_fill_page_cache)
        await sender.queue(events)
        for number in (1, 2):
            if number > 1:
                sender.dispatcher._is_stuck = True
                await sender.queue(events)
            sender.committed.clear()
            runs.append(await _drain_once(sender, sinks, events, number))
            print(f"  drain {number}: {runs[-1]}", flush=True)
    places = min(IN_FLIGHT_MAX, endpoint_queue.IN_FLIGHT_MAX * len(sinks.urls))
    count, took = sum(run.count for run in runs), sum(run.took for run in runs)
    begun = time.monotonic()
    await post(sinks.urls, [SAMPLE], events, places)
    bare = (time.monotonic() - begun) / (events * len(sinks.urls)) * count
    sinks.take()
    nominal, measured = count * LATENCY / places, count * real / places
    seen = f"{real * 1e3:.2f} ms as a lone connection sees it"
    print(f"  L: {LATENCY * 1e3:.0f} ms, {seen}; C: {places}")
    print(f"  N = {count:,} deliveries took {took:.2f} s; ideal N·L/C {nominal:.2f} s, "
          f"{measured:.2f} s with the L that was seen")  # fmt: skip
    print(f"  a bare aiohttp client with {places} at once: {bare / nominal:.2f} × the ideal")
    fresh, grown = max(run.fresh for run in runs), max(run.grown for run in runs)
    return [
        _ratio("drain / ideal N·L/C, L = 20 ms", took / nominal),
        _ratio("drain / ideal N·L/C, L as seen", took / measured),
        _ratio("drain / a bare client, 32 at once", took / bare),
        ("slowest fresh event during the drain", "< 1 s", f"{fresh * 1e3:.0f} ms", fresh < 1),
        ("memory from a fifth of a drain to its end", "<= +2 %", f"{grown:+.1%}", grown <= 0.02),
    ]


class _Run:
    """What one drain came to."""

    def __init__(self, count: int, took: float, cpu: float, fresh: float, memory: list[int]):
        self.count = count
        self.took = took
        self.cpu = cpu
        self.fresh = fresh  # s from commit to first byte of the slowest fresh event
        self.memory = memory
        early = memory[len(memory) // 5]
        self.grown = (max(memory[len(memory) // 5 :]) - early) / early

    def __str__(self) -> str:
        return (
            f"{self.count:,} deliveries in {self.took:.2f} s, {self.cpu / self.count * 1e6:.0f} µs "
            f"of CPU each, {self.memory[len(self.memory) // 5] / 2**20:.1f} MiB at a fifth, "
            f"{self.memory[-1] / 2**20:.1f} at the end"
        )


async def _drain_once(sender: Sender, sinks: Sinks, events: int, number: int) -> _Run:
    begun, cpu = time.monotonic(), time.process_time()
    if number == 1:
        await sender.dispatcher.start()
    else:
        sender.dispatcher._is_stuck = False
        sender.dispatcher._catch_up()
    draining, memory = asyncio.create_task(_when_drained(sender)), []
    while not draining.done():
        await asyncio.wait([draining], timeout=_SAMPLE_EVERY)
        memory.append(resident())
        if not draining.done():
            await sender.book()
    took, spent = await draining - begun, time.process_time() - cpu
    await sender.drained()
    arrivals = sinks.take()
    once = {(place, about) for place, about, _ in arrivals}
    count = (events + len(sender.committed)) * len(sinks.urls)
    if not len(once) == len(arrivals) == count:
        raise SystemExit(f"{len(arrivals)} came, {len(once)} different ones, of {count}")
    fresh = [at - sender.committed[about] for _, about, at in arrivals if about in sender.committed]
    return _Run(count, took, spent, max(fresh), memory)


async def _when_drained(sender: Sender) -> float:
    await sender.drained()
    return time.monotonic()


def _lone_latency(url: str) -> float:
    """Seconds from request to answer, the median over one connection with nothing else on."""
    port = urlsplit(url).port
    assert port is not None
    request = b"POST /hook HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(SAMPLE), SAMPLE)
    seconds = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(101):
            begun = time.monotonic()
            connection.sendall(request)
            connection.recv(1024)
            seconds.append(time.monotonic() - begun)
    return statistics.median(seconds)


def _fill_page_cache(tx: Any) -> None:
    """As months of service would: up to its bound, it would grow with each row that is written."""
    tx.execute("CREATE TABLE past (page BLOB)")
    for _ in range(_PAST_ROWS):
        tx.execute("INSERT INTO past VALUES (zeroblob(:size))", {"size": _PAST_BYTES})


def resident() -> int:
    """Resident bytes of this process, without the files that are mapped."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024


def _ratio(what: str, found: float) -> Target:
    return (what, "<= 1.15 ×", f"{found:.2f} ×", found <= 1.15)
