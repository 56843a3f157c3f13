"""What a delivery costs: the dispatcher beside a bare aiohttp client posting the same bodies.

Run as `python -m tests.bench.webhooks [EVENTS]` from the project's root. Queues EVENTS for five
endpoints and drains them; then a bare client posts as many. Ratios of one run on one machine.
"""

import asyncio
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from appliance.actions.announce import announce
from appliance.actions.register_endpoint import register_endpoint
from appliance.clock import SystemClock
from appliance.environment import Environment
from appliance.webhooks.dispatcher import Dispatcher
from tests.builders import TONIGHT, table_id
from tests.conftest import opened_box, with_settings

ENDPOINTS = 5
AT_ONCE = 8
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def main() -> None:
    """Print one line for the dispatcher, one for the bare client, and their ratio."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    context = multiprocessing.get_context("spawn")
    ports = context.Queue()
    receivers = context.Process(target=_receive, args=(ports,), daemon=True)
    receivers.start()
    try:
        urls = [f"http://127.0.0.1:{ports.get()}/hook" for _ in range(ENDPOINTS)]
        body, ours = asyncio.run(_drain(urls, events))
        theirs = asyncio.run(_post(urls, body, events))
    finally:
        receivers.kill()
        receivers.join()
    print(f"ratio of rates: {ours / theirs:.2f}")


def _receive(ports: "multiprocessing.Queue[int]") -> None:
    """Five receivers in a process of their own, as fast as can be."""

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        servers = [await loop.create_server(_Sink, "127.0.0.1", 0) for _ in range(ENDPOINTS)]
        for server in servers:
            ports.put(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(serve())


class _Sink(asyncio.Protocol):
    """Answers 200 whenever a whole request has come."""

    def __init__(self) -> None:
        self._raw = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._raw += data
        head, found, body = self._raw.partition(b"\r\n\r\n")
        length = int(head.lower().rpartition(b"content-length:")[2].split(b"\r\n")[0] or b"0")
        if found and len(body) >= length:
            self._raw = b""
            self._transport.write(ANSWER)


async def _drain(urls: list[str], events: int) -> tuple[bytes, float]:
    """Queue the events while nothing sends, then time the sending."""
    clock = SystemClock()
    settings = with_settings(webhooks={"allow_networks": ("127.0.0.0/8",)})
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        async with opened_box(Path(folder), clock, settings) as box:  # type: ignore[arg-type]
            environment = box.test
            await _queue(environment, urls, events)
            dispatcher = Dispatcher(environment, clock)
            started, cpu = time.perf_counter(), time.process_time()
            await dispatcher.start()
            while environment.database.peek(_pending):  # noqa: ASYNC110 - the bench looks from outside
                await asyncio.sleep(0.05)
            rate = _report("dispatcher", events, started, cpu)
            commits = environment.database.commits
            await dispatcher.close()
            print(f"commits: {commits}")
            return b"x" * 560, rate


async def _queue(environment: Environment, urls: list[str], events: int) -> None:
    database, keyring = environment.database, environment.keyring
    for url in urls:
        await database.write(register_endpoint, keyring, url, ("reservation.created",))
    for start in range(0, events, 200):
        await database.write(_book, start, min(200, events - start))


def _book(tx, start, count):  # type: ignore[no-untyped-def]
    for minute in range(start, start + count):
        row = {
            "id": tx.new_id(), "status": "confirmed", "source": "partner",
            "table_id": table_id("T1"), "date": TONIGHT, "slot": "19:30", "starts": minute,
            "ends": minute + 1, "guests": 2, "customer_name": "Salma Idrissi",
            "pass_id": tx.tokens.random_bytes(8), "external_ref": "partner-0001",
            "link_expires_at": tx.now, "created_at": tx.now, "updated_at": tx.now,
        }  # fmt: skip
        tx.insert("reservation", row)
        announce(tx, "reservation.created", row["id"])


def _pending(reader):  # type: ignore[no-untyped-def]
    return reader.value("SELECT EXISTS (SELECT 1 FROM delivery WHERE state = 'pending')")


async def _post(urls: list[str], body: bytes, events: int) -> float:
    """The same number of posts by a bare aiohttp client, as many at once."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        counts = {url: iter(range(events)) for url in urls}

        async def work(url: str) -> None:
            for _ in counts[url]:
                async with session.post(
                    url, data=body, headers={"Content-Type": "application/json"}
                ) as response:
                    await response.read()

        started, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(work(url) for url in urls for _ in range(AT_ONCE)))
        return _report("bare aiohttp", events, started, cpu)


def _report(name: str, events: int, started: float, cpu: float) -> float:
    posts = events * ENDPOINTS
    took, spent = time.perf_counter() - started, time.process_time() - cpu
    print(f"{name:>12}: {posts / took:7.0f}/s, {spent / posts * 1e6:6.0f} us of CPU each")
    return posts / took


if __name__ == "__main__":
    main()
