"""Webhook receivers in a process of their own, as cheap as can be: they must not be measured.

Each notes when the first byte of a request came (the machine's monotonic clock, which all
processes share) and about which reservation it was.
"""

import asyncio
import contextlib
import multiprocessing
import selectors
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_NAMED = b'"serviceReservationId":"'
_ID_LENGTH = 36

Arrival = tuple[int, str, float]  # which sink, about which reservation, first byte at


@dataclass
class Sinks:
    """The receivers as the measuring process sees them."""

    urls: list[str]
    _pipe: Connection

    def answer_after(self, seconds: float | None, *places: int) -> None:
        """From now on answer after so long; None: never, until told otherwise."""
        self._pipe.send((seconds, places or tuple(range(len(self.urls)))))
        self._pipe.recv()

    def take(self) -> list[Arrival]:
        """What came since the last call."""
        self._pipe.send(None)
        found: list[Arrival] = self._pipe.recv()
        return found


@contextlib.contextmanager
def open_sinks(count: int) -> Iterator[Sinks]:
    """So many receivers on loopback, which answer at once; ended with the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, count), daemon=True)
    process.start()
    try:
        yield Sinks([f"http://127.0.0.1:{port}/hook" for port in ours.recv()], ours)
    finally:
        process.kill()
        process.join()


class _Sink:
    """One receiver: how it answers at present, and what it keeps waiting."""

    def __init__(self, place: int, arrivals: list[Arrival]) -> None:
        self.place = place
        self.arrivals = arrivals
        self.delay: float | None = 0.0
        self.held: list[asyncio.Transport] = []

    def answer(self, transport: asyncio.Transport) -> None:
        if self.delay is None:
            self.held.append(transport)
        elif self.delay:
            asyncio.get_running_loop().call_later(self.delay, transport.write, ANSWER)
        else:
            transport.write(ANSWER)

    def change(self, delay: float | None) -> None:
        self.delay = delay
        held, self.held = self.held, []
        for transport in held:
            if not transport.is_closing():
                self.answer(transport)


class _Conversation(asyncio.Protocol):
    """Reads whole requests and has them answered."""

    def __init__(self, sink: _Sink) -> None:
        self._sink = sink
        self._raw = b""
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        if not self._raw:
            self._began = time.monotonic()
        self._raw += data
        head, found, body = self._raw.partition(b"\r\n\r\n")
        length = int(head.lower().rpartition(b"content-length:")[2].split(b"\r\n")[0] or b"0")
        if found and len(body) >= length:
            start = body.find(_NAMED) + len(_NAMED)
            about = body[start : start + _ID_LENGTH].decode("ascii", "replace")
            self._sink.arrivals.append((self._sink.place, about, self._began))
            self._raw = b""
            self._sink.answer(self._transport)


def _serve(pipe: Connection, count: int) -> None:
    # epoll counts in whole milliseconds: an answer after 20 ms would take up to 21.
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    loop.run_until_complete(_obey(pipe, count))


async def _obey(pipe: Connection, count: int) -> None:
    loop, arrivals = asyncio.get_running_loop(), list[Arrival]()
    sinks = [_Sink(place, arrivals) for place in range(count)]
    servers = [
        await loop.create_server(lambda sink=sink: _Conversation(sink), "127.0.0.1", 0)  # type: ignore[misc]
        for sink in sinks
    ]

    def told() -> None:
        order = pipe.recv()
        if order is None:
            pipe.send(arrivals)
            arrivals.clear()
            return
        delay, places = order
        for place in places:
            sinks[place].change(delay)
        pipe.send(True)

    loop.add_reader(pipe.fileno(), told)
    pipe.send([server.sockets[0].getsockname()[1] for server in servers])
    await asyncio.Event().wait()
