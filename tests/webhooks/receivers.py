"""Scripted receivers: they read requests and send the responses that the test sets."""

import asyncio
import contextlib
import json
from dataclasses import dataclass

from tests.waiting import within

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def an_answer(status, *headers, body=b""):
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass
class Request:
    """A request that a receiver has read."""

    line: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self):
        return json.loads(self.raw)

    @property
    def reservation(self):
        return self.body["data"]["reservation"]

    @property
    def id(self):
        return self.headers["x-service-delivery"]


class Receiver:
    """A TCP server that reads requests and sends scripted responses: bytes, or a coroutine.

    `answers` are used one after another, and then `always`. A script `async (writer, request)` may
    write anything. If it returns False, the connection is closed. No answer is sent while
    `answering` is cleared.
    """

    def __init__(self):
        self.answers = []
        self.always = OK
        self.delay = 0.0
        self.requests = []
        self.connections = 0
        self.at_once = 0
        self.most_at_once = 0
        self.port = 0
        self.answering = asyncio.Event()
        self.answering.set()
        self._changed = asyncio.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook"

    async def got(self, count):
        """Wait until `count` requests have arrived. Returns all requests."""
        async with within(f"{count} requests at the receiver"):
            while len(self.requests) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.requests

    async def converse(self, reader, writer):
        self.connections += 1
        while (request := await _read_request(reader)) is not None:
            self.requests.append(request)
            self._changed.set()
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            try:
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self.answering.wait()
                script = self.answers.pop(0) if self.answers else self.always
                if isinstance(script, bytes):
                    writer.write(script)
                elif await script(writer, request) is False:
                    return
            finally:
                self.at_once -= 1


async def _read_request(reader):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *rest = head.decode().strip().split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (header.partition(":") for header in rest)}
    return Request(line, headers, await reader.readexactly(int(headers["content-length"])))


@contextlib.asynccontextmanager
async def a_server(converse, **options):
    """Run a TCP server on a free loopback port; close it and its connections afterwards."""
    tasks, writers = set(), set()

    async def connected(reader, writer):
        tasks.add(asyncio.current_task())
        writers.add(writer)
        try:
            await converse(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    where = {} if "sock" in options else {"host": "127.0.0.1", "port": 0}
    server = await asyncio.start_server(connected, **where, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()
