"""A door is answered while others hold, stuff or ask for connections as fast as they can.

Ten seconds of each kind in `make soak`, where 99 of 100 scans take less than half a second.
`python -m tests.faults.test_flooding KIND PORT SECONDS LEAST` is the flood: it prints how many
connections it made, and goes on until they are LEAST, for a minute at most.
"""

import asyncio
import itertools
import json
import ssl
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from socket import SO_LINGER, SOL_SOCKET

import pytest

from tests.faults.nursery import ForkedBox
from tests.journeys.box_process import found_box
from tests.journeys.partner_side import calling
from tests.ports import kept_port
from tests.soak.scale import FULL, tell
from tests.soak.wire import Wire

pytestmark = [pytest.mark.slow, pytest.mark.process]

SECONDS = 10.0 if FULL else 1.5
SCAN_SECONDS = 0.5 if FULL else 5.0  # p99
PACE = 0.02
PLAIN, SECURED = "plain", "secured"
FLOODS = {  # where to, and how many connections at least: fewer would try nothing
    "connections_that_say_nothing": (SECURED, 500),
    "requests_that_never_end": (PLAIN, 500),
    "headers_of_ten_megabytes": (PLAIN, 20),
    "thousand_handshakes_a_second": (SECURED, 5000 if FULL else 100),
}
HOST = "127.0.0.1"
HALF_A_REQUEST = b"POST /terminal/v1/scans HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
STALLING = 500
HUGE = 8
HEADER_BYTES = 10_000_000
HANDSHAKES_A_SECOND = 1000
HAND_IN_HAND = 64
A_HANDSHAKE = b"\x16"  # and not an alert
LOST = (OSError, asyncio.IncompleteReadError)
AT_MOST = 60.0  # seconds


class Flood:
    """Connections to this machine alone. `made` counts those that the box had to deal with."""

    def __init__(self, port, seconds, least):
        self._port = port
        self._until = time.monotonic() + seconds
        self._last = time.monotonic() + max(seconds, AT_MOST)
        self._least = least
        self.made = 0

    @property
    def is_over(self):
        return time.monotonic() >= (self._until if self.made >= self._least else self._last)

    async def connections_that_say_nothing(self):
        """Of TLS not even the first word."""
        await self._many(STALLING, self._stay)

    async def requests_that_never_end(self):
        """A byte now and then, until each is shown out, and comes again."""
        await self._many(STALLING, lambda reader, writer: self._stay(reader, writer, b"x"))

    async def headers_of_ten_megabytes(self):
        """As much of them as is taken."""
        await self._many(HUGE, self._send_a_header)

    async def thousand_handshakes_a_second(self):
        """Each costs the box a signature, and whoever asks for it nothing: one greeting for all."""
        greeting, begun, numbers = hello(), time.monotonic(), itertools.count()

        async def shake_hands():
            while not self.is_over:
                due = begun + next(numbers) / HANDSHAKES_A_SECOND
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await self._once(lambda reader, writer: greet(reader, writer, greeting))

        await asyncio.gather(*(shake_hands() for _ in range(HAND_IN_HAND)))

    async def _many(self, count, what):
        async def again():
            while not self.is_over:
                await self._once(what)

        await asyncio.gather(*(again() for _ in range(count)))

    async def _once(self, what):
        try:
            reader, writer = await asyncio.open_connection(HOST, self._port)
        except OSError:
            await asyncio.sleep(0.1)
            return
        reset_at_the_end(writer)
        try:
            self.made += 1
            await what(reader, writer)
        except LOST:
            pass
        finally:
            writer.transport.abort()

    async def _stay(self, reader, writer, word=b""):
        writer.write(HALF_A_REQUEST if word else b"")
        while not self.is_over and not reader.at_eof() and not writer.is_closing():
            await asyncio.sleep(0.3)
            writer.write(word)

    async def _send_a_header(self, reader, writer):
        writer.write(HALF_A_REQUEST)
        for _ in range(HEADER_BYTES // 100_000):
            if self.is_over or reader.at_eof():
                return
            writer.write(b"x" * 100_000)
            await writer.drain()


def hello():
    """What a browser says first."""
    sent = ssl.MemoryBIO()
    speaking = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="box")
    try:
        speaking.do_handshake()
    except ssl.SSLWantReadError:
        return sent.read()
    raise AssertionError("nobody answered that")


async def greet(reader, writer, greeting):
    """Its answer, with the signature, is all that is wanted."""
    writer.write(greeting)
    kind = await reader.readexactly(1)
    assert kind == A_HANDSHAKE, kind


def reset_at_the_end(writer):
    """This machine has so many ports: none is to wait for a minute after each."""
    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))


class Ports:
    """Whose life keeps a port."""


@pytest.fixture
def house(tmp_path):
    """A box that speaks https too, which it does not on loopback alone, and its two ports."""
    owner = Ports()
    secured = kept_port(owner)
    settings = {"VENUEBOX_SERVER_TLS_PORT": str(secured), "VENUEBOX_SERVER_MDNS": "false"}
    founded = found_box(tmp_path)
    box = ForkedBox(founded.data, log=tmp_path / "box.log", settings=settings)
    box.port = kept_port(owner)
    host = "0.0.0.0"  # noqa: S104 - for these seconds, at a port that nobody knows
    box.spawn("--data", str(founded.data), "--host", host, "--port", str(box.port))
    try:
        box.wait_until_ready()
        yield founded, box, {PLAIN: box.port, SECURED: secured}
        assert box.stop() < 10
    finally:
        box.kill()


@pytest.mark.proves("G14")
@pytest.mark.parametrize("kind", FLOODS)
async def test_the_door_is_answered_while_there_are(house, kind):
    founded, box, ports = house
    place, least = FLOODS[kind]
    async with calling(box, founded, "live") as (partner, door):
        code = await a_guest_of_tonight(partner, door)
        took = {"kept": [], "new": []}
        kept = Wire(box.address, founded.terminals["live"])
        with flooding(kind, ports[place], least) as flood:
            while flood.poll() is None:
                for way, ask in (("kept", kept.ask), ("new", new_phone(ports, founded))):
                    took[way].append(await scan(ask, code, f"{way}-{len(took[way])}"))
                await asyncio.sleep(PACE)
            made = int(flood.stdout.read())
        kept.close()

    high = {way: sorted(seconds)[len(seconds) * 99 // 100] for way, seconds in took.items()}
    slow = [f"{way}: p99 {s:.3f} s" for way, s in high.items() if s > SCAN_SECONDS]
    tell(kind.replace("_", " "), made, goal=least, found=slow)
    print({way: f"{len(took[way])} scans, p99 {s * 1000:.0f} ms" for way, s in high.items()})
    assert slow == []
    assert made >= least
    assert "Traceback" not in box.complaints()


@contextmanager
def flooding(kind, port, least):
    """The process that does it, which ends by itself, and with us at the latest.

    In `make soak` it has no longer than everybody else, however little that was.
    """
    numbers = [port, SECONDS, 0 if FULL else least]
    command = [sys.executable, "-m", "tests.faults.test_flooding", kind, *map(str, numbers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as flood:
        try:
            yield flood
        finally:
            flood.kill()


async def a_guest_of_tonight(partner, door):
    """Their code."""
    venue = await partner.must(200, "GET", "/v1/venue")
    evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
    made = await partner.must(201, "POST", "/v1/reservations", {
        "tableId": venue["tables"][0]["id"], "date": evening, "guests": 2, "notifyCustomer": False,
        "customer": {"name": "Salma", "phone": "+212600000001"},
        "idempotencyKey": "flood",
    })  # fmt: skip
    return made["guestAccessUrl"]


async def scan(ask, code, scan_id):
    """The seconds until the verdict."""
    begun = time.monotonic()
    status, body = await ask("POST", "/terminal/v1/scans", {"scanId": scan_id, "code": code})
    assert status == 200, body
    return time.monotonic() - begun


def new_phone(ports, founded):
    """One that connects anew, over https: it has to wait among all the others."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    async def ask(method, path, body):
        reader, writer = await asyncio.open_connection("127.0.0.1", ports[SECURED], ssl=context)
        content = json.dumps(body).encode()
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{ports[SECURED]}\r\n"
            f"Authorization: Bearer {founded.terminals['live']}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        line = await reader.readline()
        writer.transport.abort()
        return int(line.split()[1]), line

    return ask


if __name__ == "__main__":
    kind, *numbers = sys.argv[1:]
    running = Flood(*map(int, numbers[:1]), *map(float, numbers[1:]))
    asyncio.run(getattr(running, kind)())
    print(running.made)
