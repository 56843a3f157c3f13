"""What a delivery costs: the dispatcher beside a bare aiohttp client posting the same bodies.

Part of `python -m bench.dispatcher`.
"""

import asyncio
import time
from itertools import islice
from pathlib import Path
from typing import Any

import aiohttp

from appliance.reservations.rows import get_reservation
from appliance.venue.model import get_venue
from appliance.webhooks.deliveries import iterate_untried
from appliance.webhooks.endpoints import get_endpoint
from appliance.webhooks.payload import event_body
from bench.deliveries import a_sender
from bench.sinks import Sinks

AT_ONCE = 6  # at each endpoint
SAMPLE = b"x" * 560


async def throughput(folder: Path, sinks: Sinks, events: int) -> float:
    """How many times as many deliveries a second as the bare client makes posts, at 6 at once."""
    sinks.answer_after(0.0)
    async with a_sender(folder, sinks.urls) as sender:
        await sender.queue(events)
        bodies = sender.environment.database.peek(_bodies)
        started, cpu = time.perf_counter(), time.process_time()
        await sender.dispatcher.start()
        await sender.drained()
        ours = _report("dispatcher", events * len(sinks.urls), started, cpu)
    started, cpu = time.perf_counter(), time.process_time()
    await post(sinks.urls, bodies, events, AT_ONCE * len(sinks.urls))
    theirs = _report("bare aiohttp", events * len(sinks.urls), started, cpu)
    sinks.take()
    return ours / theirs


def _bodies(reader: Any) -> list[bytes]:
    """A hundred of the bodies that are queued."""
    [endpoint_id] = reader.row("SELECT id FROM endpoint LIMIT 1")
    found = islice(iterate_untried(reader, endpoint_id, after=0, backlog_end=0), 100)
    venue, endpoint = get_venue(reader), get_endpoint(reader, endpoint_id)
    return [
        event_body(d, get_reservation(reader, d.reservation_id or ""), venue, endpoint)
        for d in found
    ]


async def post(urls: list[str], bodies: list[bytes], events: int, at_once: int) -> None:
    """So many posts to each URL by a bare aiohttp client, `at_once` over all of them."""
    connector = aiohttp.TCPConnector(limit=0)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(cookie_jar=jar, connector=connector) as session:
        left = ((url, number) for number in range(events) for url in urls)

        async def work() -> None:
            for url, number in left:
                body = bodies[number % len(bodies)]
                headers = {"Content-Type": "application/json"}
                async with session.post(url, data=body, headers=headers) as response:
                    await response.read()

        await asyncio.gather(*(work() for _ in range(at_once)))


def _report(name: str, posts: int, started: float, cpu: float) -> float:
    took, spent = time.perf_counter() - started, time.process_time() - cpu
    print(f"  {name:>12}: {posts / took:7,.0f}/s, {spent / posts * 1e6:6.0f} µs of CPU each")
    return posts / took
