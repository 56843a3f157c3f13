"""The relay's public side: find the right box for each connection, and forward the data.

The first bytes of a connection contain the box's host name. TLS is forwarded unchanged; the relay
has no key to decrypt it. Plain http is redirected to https, except for ACME challenges.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TypeVar, cast

import asyncssh

from appliance.core.errors import RateLimited
from appliance.http.rate_limit import RateLimit
from appliance.http.request import address_of, caller_key
from web.connection import ConnectionLimit
from web.relay.enrolment import HTTP_PORT, TLS_PORT
from web.relay.hello import HEAD_MAX, BadHead, read_request, read_server_name
from web.relay.server import Boxes, Direction, Traffic, open_channel

log = logging.getLogger(__name__)

T = TypeVar("T")
Channel = tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_CHALLENGES = "/.well-known/acme-challenge/"
_CHUNK = 16 * 1024
_READS_MAX = 64  # reads per head; limited, because each read parses the whole head again
_HEAD_SECONDS = 5.0  # for the first bytes of a connection
_IDLE_SECONDS = 600.0  # without traffic
_CLOSING_SECONDS = 5.0
_OPEN_SECONDS = 30.0  # for a box to accept a channel, even over a slow and busy line
_CONFIRM_SECONDS = 60.0  # for a box to confirm that a channel is closed, even over such a line
# Fatal TLS alerts: unrecognized_name for a name that is not enrolled, internal_error otherwise.
_UNKNOWN_NAME, _AWAY = b"\x15\x03\x03\x00\x02\x02\x70", b"\x15\x03\x03\x00\x02\x02\x50"


class Router:
    """Passes public connections to the boxes."""

    def __init__(self, boxes: Boxes, limit: ConnectionLimit, rate: RateLimit) -> None:
        """Create the router.

        `limit` limits the open connections from each client address, and `rate` limits its new
        connections per minute.
        """
        self._boxes, self._limit, self._rate = boxes, limit, rate
        each = boxes.limits.connections
        self._callers = defaultdict[str, ConnectionLimit](
            # One address may use half of a box's limit, because many guests may share it behind
            # carrier NAT.
            lambda: ConnectionLimit(each, per_address=max(1, each // 2))
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self.closed_heads = 0
        """The number of connections closed because their first bytes were late or malformed, or
        contained an unknown name."""

    def serve_tls(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a TLS connection to the box whose name is the connection's server name."""
        self._start(self._serve(reader, writer, self._route_tls))

    def serve_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a plain http request with a redirect, or pass an ACME challenge to the box."""
        self._start(self._serve(reader, writer, self._route_http))

    async def close(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, serving: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(serving)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, route: Handler
    ) -> None:
        if not self._limit.enter(writer.transport):
            return
        try:
            self._rate.spend(caller_key(_caller(writer)[0]))
            await route(reader, writer)
        except BadHead:
            self.closed_heads += 1
        except (OSError, TimeoutError, asyncssh.Error, RateLimited) as error:
            log.debug("relay: connection ended: %s", type(error).__name__)
        finally:
            self._limit.leave(writer.transport)
            with suppress(OSError, TimeoutError):
                writer.close()
                async with asyncio.timeout(_CLOSING_SECONDS):
                    await writer.wait_closed()
            writer.transport.abort()

    async def _route_tls(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name, hello = await self._read_head(reader, read_server_name)
        if not self._boxes.is_enrolled(name):
            writer.write(_UNKNOWN_NAME)
            raise BadHead
        try:
            await self._pass_on(name, TLS_PORT, hello, reader, writer)
        except (_Refused, asyncssh.ChannelOpenError):
            writer.write(_AWAY)

    async def _route_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Redirect GET and HEAD to https. Reject other methods: their data was sent unencrypted."""
        (method, target, host), _bytes = await self._read_head(reader, read_request)
        if not self._boxes.is_enrolled(host):
            writer.write(_http_answer("421 Misdirected Request"))
            raise BadHead
        if method == "GET" and target.startswith(_CHALLENGES):
            try:
                # Build a new request instead of forwarding the caller's, so that only the parts
                # copied here reach the box.
                head = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
                await self._pass_on(host, HTTP_PORT, head.encode(), None, writer)
            except (_Refused, asyncssh.ChannelOpenError):
                writer.write(_http_answer("503 Service Unavailable"))
        elif method in {"GET", "HEAD"}:
            location = f"Location: https://{host}{target}"
            writer.write(_http_answer("308 Permanent Redirect", location))
        else:
            writer.write(_http_answer("403 Forbidden"))

    async def _read_head(
        self, reader: asyncio.StreamReader, parse: Callable[[bytes], T | None]
    ) -> tuple[T, bytes]:
        """Read until `parse` returns a result. Return the result and all bytes read.

        Raises BadHead if there is no result before the deadline or within 16 KiB.
        """
        head = b""
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                for _read in range(_READS_MAX):
                    data = await reader.read(HEAD_MAX - len(head))
                    head += data
                    found = parse(head)
                    if found is not None:
                        return found, head
                    if not data or len(head) == HEAD_MAX:
                        break
        except TimeoutError:
            pass
        raise BadHead

    async def _pass_on(
        self, name: str, port: int, head: bytes,
        reader: asyncio.StreamReader | None, writer: asyncio.StreamWriter,
    ) -> None:  # fmt: skip
        """Open a channel to the box, send `head`, and forward data until the box ends the channel.

        Without a `reader`, nothing but `head` is sent to the box.
        """
        connection, traffic = self._boxes.connection(name), self._boxes.traffic[name]
        # `open` also counts closed channels that the box has not yet confirmed as closed.
        is_full = traffic.open >= 2 * self._boxes.limits.connections
        if connection is None or is_full or not self._callers[name].enter(writer.transport):
            traffic.refused += 1
            raise _Refused
        traffic.open += 1
        traffic.connections += 1
        opening = asyncio.ensure_future(open_channel(connection, name, port, _caller(writer)))
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                box_reader, box_writer = await asyncio.shield(opening)
            traffic.bytes_in += len(head)
            box_writer.write(head)
            await self._splice(traffic, reader, writer, box_reader, box_writer)
        finally:
            self._callers[name].leave(writer.transport)
            self._start(_close(opening, connection, traffic))

    async def _splice(
        self, traffic: Traffic, reader: asyncio.StreamReader | None, writer: asyncio.StreamWriter,
        box_reader: asyncssh.SSHReader[bytes], box_writer: asyncssh.SSHWriter[bytes],
    ) -> None:  # fmt: skip
        loop, rate = asyncio.get_running_loop(), self._boxes.limits.bytes_per_second

        async def pump(source: _Source, sink: _Sink, direction: Direction) -> None:
            while data := await source.read(_CHUNK):
                deadline.reschedule(loop.time() + _IDLE_SECONDS)
                await traffic.spend(direction, len(data), rate)
                sink.write(data)
                await sink.drain()
            sink.write_eof()

        async with asyncio.timeout(_IDLE_SECONDS) as deadline:
            outward = asyncio.ensure_future(pump(cast("_Source", box_reader), writer, "bytes_out"))
            tasks = {outward}
            if reader is not None:
                tasks.add(inward := asyncio.ensure_future(pump(reader, box_writer, "bytes_in")))
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if not outward.done() and inward.exception() is None:
                    await outward  # the caller sends nothing more, but still reads
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


async def _close(
    opening: asyncio.Future[Channel], connection: asyncssh.SSHServerConnection, traffic: Traffic
) -> None:
    """Close the channel, and stop counting it once the box has confirmed this.

    If the box does not confirm it in time, close the box's connection, because the library would
    otherwise keep the channel.
    """
    try:
        async with asyncio.timeout(_CONFIRM_SECONDS):
            channel = (await opening)[1].channel
            channel.abort()
            await channel.wait_closed()
    except TimeoutError:
        connection.abort()
    except (OSError, asyncssh.Error):
        pass
    finally:
        traffic.open -= 1


_Source = asyncio.StreamReader
_Sink = asyncio.StreamWriter | asyncssh.SSHWriter[bytes]


class _Refused(Exception):
    """Raised if the box is not connected or has reached its maximum number of connections."""


def _caller(writer: asyncio.StreamWriter) -> tuple[str, int]:
    """Return the caller's address and port. Converts an IPv4-mapped IPv6 address to IPv4."""
    host, port = (writer.get_extra_info("peername") or ("", 0))[:2]
    return str(address_of(host) or host), port


def _http_answer(status: str, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, "Content-Length: 0", "Connection: close", "", ""]
    return "\r\n".join(lines).encode()
