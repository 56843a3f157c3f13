"""Terminals are served while others flood the box with connections.

Ten seconds of each kind in `make soak`, where 99 of 100 scans take less than half a second.
`python -m tests.promises.test_flooding KIND PORT SECONDS LEAST` runs the flood and prints the
number of its connections. It goes on until there are LEAST, at most for a minute.
"""

import asyncio
import itertools
import json
import ssl
import struct
import subprocess
import sys
import time
from socket import SO_LINGER, SOL_SOCKET

import pytest

from tests.journeys.box_process import STOP_SECONDS, found_box
from tests.journeys.partner_side import calling
from tests.ports import held_port
from tests.promises.nursery import ForkedBox
from tests.soak.scale import FULL, tell

pytestmark = [pytest.mark.slow, pytest.mark.process]

SECONDS = 10.0 if FULL else 1.5
SCAN_SECONDS = 0.5 if FULL else 5.0  # p99
PLAIN, SECURED = "plain", "secured"
FLOODS = {  # the address, and the minimum number of connections for a meaningful test
    "connections_that_say_nothing": (SECURED, 500),
    "requests_that_never_end": (PLAIN, 500),
    "headers_of_ten_megabytes": (PLAIN, 20),
    "thousand_handshakes_a_second": (SECURED, 5000 if FULL else 100),
}
HOST = "127.0.0.1"
HALF_A_REQUEST = b"POST /terminal/v1/scans HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HANDSHAKE = b"\x16"  # not a TLS alert
LOST = (OSError, asyncio.IncompleteReadError)
AT_MOST = 60.0  # in seconds


class Flood:
    """Connections to this machine. `made` counts those that the box had to handle."""

    def __init__(self, port, seconds, least):
        self._port = int(port)
        self._least = int(least)
        self._until = time.monotonic() + float(seconds)
        self._last = time.monotonic() + max(float(seconds), AT_MOST)
        self.made = 0

    @property
    def is_over(self):
        return time.monotonic() >= (self._until if self.made >= self._least else self._last)

    async def connections_that_say_nothing(self):
        await self._many(500, self._stay)

    async def requests_that_never_end(self):
        await self._many(500, lambda reader, writer: self._stay(reader, writer, b"x"))

    async def headers_of_ten_megabytes(self):
        await self._many(8, self._send_a_header)

    async def thousand_handshakes_a_second(self):
        """Each handshake costs the box a signature and the sender nothing."""
        greeting, begun, numbers = hello(), time.monotonic(), itertools.count()

        async def shake_hands(reader, writer):
            await asyncio.sleep(max(0.0, begun + next(numbers) / 1000 - time.monotonic()))
            writer.write(greeting)
            assert await reader.readexactly(1) == HANDSHAKE

        await self._many(64, shake_hands)

    async def _many(self, count, converse):
        async def again():
            while not self.is_over:
                await self._once(converse)

        await asyncio.gather(*(again() for _ in range(count)))

    async def _once(self, converse):
        try:
            reader, writer = await asyncio.open_connection(HOST, self._port)
        except OSError:
            await asyncio.sleep(0.1)
            return
        # Close by RST, which leaves no port in TIME_WAIT.
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, linger)
        try:
            self.made += 1
            await converse(reader, writer)
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
        for _ in range(100):
            if self.is_over or reader.at_eof():
                return
            writer.write(b"x" * 100_000)
            await writer.drain()


def hello():
    """Return the ClientHello of a TLS handshake."""
    sent = ssl.MemoryBIO()
    speaking = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="box")
    with pytest.raises(ssl.SSLWantReadError):
        speaking.do_handshake()
    return sent.read()


@pytest.fixture
def served(tmp_path):
    """Run a box with https, which needs a non-loopback address; yield it and its ports."""
    with held_port() as plain, held_port() as secured:
        settings = {"VENUEBOX_SERVER_TLS_PORT": str(secured), "VENUEBOX_SERVER_MDNS": "false"}
        founded = found_box(tmp_path)
        box = ForkedBox(founded.data, log=tmp_path / "box.log", settings=settings)
        box.port = plain
        host = "0.0.0.0"  # noqa: S104 - for these seconds, at a port that nobody knows
        box.spawn("--data", str(founded.data), "--host", host, "--port", str(plain))
        try:
            box.wait_until_ready()
            yield founded, box, {PLAIN: plain, SECURED: secured}
            assert box.stop() < STOP_SECONDS
        finally:
            box.kill()


@pytest.mark.parametrize("kind", FLOODS)
async def test_scans_are_answered_during_a_flood_of_connections(served, kind):
    founded, box, ports = served
    place, least = FLOODS[kind]
    numbers = (ports[place], SECONDS, 0 if FULL else least)
    took = []
    async with calling(box, founded, "live") as (partner, door):
        venue = await partner.must(200, "GET", "/v1/venue")
        evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
        booked = await partner.must(201, "POST", "/v1/reservations", {
            "tableId": venue["tables"][0]["id"], "date": evening, "guests": 2,
            "customer": {"name": "Salma", "phone": "+212600000001"}, "idempotencyKey": "flood",
        })  # fmt: skip
    with start_flood(kind, *numbers) as flood:
        try:
            while flood.poll() is None:
                body = {"scanId": f"scan-{len(took)}", "code": booked["guestAccessUrl"]}
                took.append(await scan(ports[SECURED], founded.terminals["live"], body))
                await asyncio.sleep(0.02)
            made = int(flood.stdout.read())
        finally:
            flood.kill()

    high = sorted(took)[len(took) * 99 // 100]
    slow = [f"p99 {high:.3f} s"] if high > SCAN_SECONDS else []
    tell(kind.replace("_", " "), made, goal=least, found=slow)
    assert slow == []
    assert made >= least
    assert "Traceback" not in box.complaints()


def start_flood(*arguments):
    command = [sys.executable, "-m", "tests.promises.test_flooding", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def scan(port, token, body):
    """Scan on a new https connection; return the seconds until the verdict."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    begun = time.monotonic()
    reader, writer = await asyncio.open_connection(HOST, port, ssl=context)
    content = json.dumps(body).encode()
    writer.write(
        f"POST /terminal/v1/scans HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n".encode()
        + content
    )
    line = await reader.readline()
    writer.transport.abort()
    assert line.split()[1] == b"200", line
    return time.monotonic() - begun


if __name__ == "__main__":
    running = Flood(*sys.argv[2:])
    asyncio.run(getattr(running, sys.argv[1])())
    print(running.made)
