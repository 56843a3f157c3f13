"""Whoever would shut the door for the others, as a program: to this machine alone, and for a while.

`python -m tests.faults.flooding KIND PORT SECONDS LEAST` prints how many connections that were. On
a busy machine it goes on until they are LEAST, for a minute at most.
"""

import asyncio
import itertools
import ssl
import struct
import sys
import time
from socket import SO_LINGER, SOL_SOCKET

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
    """One kind of it. `made` counts what the box had to deal with."""

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


def main(kind, port, seconds, least):
    flood = Flood(int(port), float(seconds), int(least))
    asyncio.run(getattr(flood, kind)())
    print(flood.made)


if __name__ == "__main__":
    main(*sys.argv[1:])
