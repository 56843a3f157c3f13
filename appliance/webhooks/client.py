"""One attempt: connect to a checked address over verified TLS, send, and name the outcome."""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Any, cast

import aiohappyeyeballs
import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage, StreamWriter
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from multidict import CIMultiDict

from appliance.webhooks.deliveries import Outcome
from appliance.webhooks.tls_trust import PinnedCertificate, Trust
from appliance.webhooks.url_policy import (
    Blocked,
    EgressGuard,
    IpAddress,
    Reach,
    TargetUrl,
    reach_of,
)

GUARD, DNS, CONNECT, TLS, WAIT, DONE = "guard", "dns", "connect", "tls", "wait", "done"
SENT = (WAIT, DONE)  # where the request was sent, whatever came of it

_UNKNOWN_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
NO_ROUTE, DNS_TEMP, CONN_TIMEOUT = "no_route", "dns_temp", "conn_timeout"
BOX_OFFLINE = "box_offline"

_UNREACHABLE = {
    errno.ENETUNREACH: NO_ROUTE,  # said by our own machine
    errno.ENETDOWN: NO_ROUTE,
    errno.EHOSTUNREACH: "unreachable",
    errno.EADDRNOTAVAIL: "unreachable",
}

_SUCCESS = 2  # the first digit of a status


def answered(
    status: int, excerpt: bytes, remote_address: str | None, date: str | None = None
) -> Outcome:
    """The outcome of an answer: 2xx is delivered, a redirect is a failure like any other."""
    code = "delivered" if status // 100 == _SUCCESS else f"http_{status}"
    return Outcome(
        DONE, code, status, remote_address, _legible(excerpt), receiver_time=_instant(date)
    )


def failed(error: Exception, phase: str, remote_address: str | None = None) -> Outcome:
    """The outcome of an attempt that `error` ended in `phase`."""
    if isinstance(error, Blocked):
        return Outcome(GUARD, "blocked")
    return Outcome(phase, _code(error, phase), remote_address=remote_address)


def _code(error: Exception, phase: str) -> str:  # noqa: PLR0911 - a table, one line each
    match error:
        case socket.gaierror():
            return "dns_nxdomain" if error.errno in _UNKNOWN_NAME else DNS_TEMP
        case ssl.SSLCertVerificationError():
            return "tls_cert"
        case ssl.SSLError():
            return "tls_other"
    if phase == TLS:
        return CONN_TIMEOUT if isinstance(error, TimeoutError) else "tls_other"
    match error:
        case TimeoutError():
            return {DNS: DNS_TEMP, CONNECT: CONN_TIMEOUT}.get(phase, "timeout")
        case ConnectionRefusedError():
            return "conn_refused"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | ConnectionError():
            return "reset"
        case OSError():
            return _UNREACHABLE.get(error.errno or 0, "failed")
    return "protocol"


@lru_cache(maxsize=8)  # answers of one second say the same
def _instant(date: str | None) -> int | None:
    """The instant that a Date header names, in ms since 1970."""
    if date is None:
        return None
    try:
        return int(parsedate_to_datetime(date).timestamp()) * 1000
    except (ValueError, OverflowError):
        return None


def _legible(excerpt: bytes) -> str | None:
    """The first bytes of an answer as text that no terminal, page or log can stumble over."""
    text = excerpt.decode("utf-8", "backslashreplace")
    escaped = "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
    return escaped or None


# Opens a TCP connection to one of the addresses. Raises OSError.
Connect = Callable[[Sequence[IpAddress], int], Awaitable[socket.socket]]

USER_AGENT = "venuebox-webhooks/1"
EXCERPT_MAX = 1024
_BODY_MAX = 16 * 1024  # of an answer, read only to use its connection again
_BLOCK = 4096
_INFORMATIONAL_MAX = 16
_SWITCHING = 101
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=None)  # `Client.post` has its own
_NEXT_SECONDS = 0.25  # after which the next address is tried beside the one before

# How far from the receiver a failure arose: its own answer counts most. That this machine has no
# way, or does not know that kind of address, counts only when nothing else was reported.
_DISTANCES = {
    errno.ECONNREFUSED: 0, errno.ECONNRESET: 1, errno.ETIMEDOUT: 2, errno.EHOSTUNREACH: 3,
    errno.ENETUNREACH: 5, errno.ENETDOWN: 5, errno.EADDRNOTAVAIL: 6, errno.EAFNOSUPPORT: 6,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Budgets:
    """How long an attempt may take, in seconds: `total` is that of the interface, section 6.3.

    `connect` is for TCP alone.
    """

    total: float = 10.0
    connect: float = 4.0
    drain: float = 1.0
    idle: float = 2.0  # at most twice that, as aiohttp sweeps; many servers close after five


@dataclass(frozen=True, slots=True)
class Request:
    """The headers that one delivery adds to those of every request, and the body."""

    headers: Mapping[str, str]
    body: bytes


_FAILURES = (OSError, Blocked, aiohttp.ClientError, HttpProcessingError)


class Client:
    """Sends to one receiver over aiohttp, keeping connections alive while they are busy.

    Follows no redirect, asks no proxy, keeps no cookie and unpacks nothing.
    """

    def __init__(
        self,
        receiver: TargetUrl,
        guard: EgressGuard,
        connect: Connect,
        trust: Trust,
        budgets: Budgets,
    ) -> None:
        self.receiver = receiver
        self._guard = guard
        self._connect = connect
        self._trust = trust
        self._budgets = budgets
        self._loop = asyncio.get_running_loop()
        self._headers = {
            "Host": receiver.authority,
            "User-Agent": USER_AGENT,
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
        }
        self._request_line = f"POST {receiver.target} HTTP/1.1"
        self._connector = _Connector(self._dial, budgets.idle)
        self._key = ConnectionKey(
            host=receiver.host,
            port=receiver.port,
            is_ssl=receiver.secure,
            ssl=True,
            proxy=None,
            proxy_auth=None,
            proxy_headers_hash=None,
        )
        self._in_use = 0
        self._closed = False
        self.addresses: Sequence[IpAddress] | None = (
            None if receiver.address is None else [receiver.address]
        )

    @property
    def is_local(self) -> bool:
        """Whether the receiver is known to be in the venue's network, or in this very process."""
        found = self.addresses
        return found is not None and all(reach_of(each) is not Reach.PUBLIC for each in found)

    def text(self, request: Request) -> bytes:
        """`request` as it is sent, for the log."""
        lines = [f"{name}: {value}\r\n" for name, value in self._headers_of(request).items()]
        return f"{self._request_line}\r\n{''.join(lines)}\r\n".encode() + request.body

    async def post(self, request: Request) -> Outcome:
        """Send `request` within the total budget; every failure is an outcome.

        Decided by the head of the answer: what follows it changes nothing.
        """
        call = _Call(self._key)
        started = self._loop.time()
        self._in_use += 1
        try:
            try:
                async with asyncio.timeout(self._budgets.total) as limit:
                    message, body = await self._send(request, call)
            except _FAILURES as error:
                if limit.expired():
                    return Outcome(call.phase, "timeout", remote_address=call.remote_address)
                return failed(error, call.phase, call.remote_address)
            remaining = started + self._budgets.total - self._loop.time()
            excerpt = await self._read(body, max(0.0, min(remaining, self._budgets.drain)))
            call.release()
            return answered(message.code, excerpt, call.remote_address, message.headers.get("Date"))
        finally:
            call.close()
            self._in_use -= 1
            if self._closed:
                await self.close()

    async def close(self) -> None:
        """Close the idle connections; those in use are closed after their answer."""
        self._closed = True
        if not self._in_use:
            await self._connector.close(abort_ssl=True)

    def _headers_of(self, request: Request) -> CIMultiDict[str]:
        length = {"Content-Length": str(len(request.body))}
        return CIMultiDict(self._headers | dict(request.headers) | length)

    async def _send(
        self, request: Request, call: "_Call"
    ) -> tuple[RawResponseMessage, StreamReader]:
        while True:
            try:
                return await self._answer(request, call)
            except aiohttp.ClientConnectionError:
                # Closed by the receiver while it was idle: that is no answer. The next
                # connection is a fresh one, or one more of those that were idle.
                if call.dialled or call.connection is None or call.connection.heard:
                    raise
                call.close()

    async def _answer(
        self, request: Request, call: "_Call"
    ) -> tuple[RawResponseMessage, StreamReader]:
        """One exchange: the head of its answer, and the body that follows.

        What a `ClientSession` would add is of no use here: redirects, cookies, timers.
        """
        call.held = await self._connector.connect(cast("Any", call), [], _NO_TIMEOUT)
        call.connection = connection = cast("_Connection", call.held.protocol)
        connection.expect_answer(call)
        writer = StreamWriter(connection, self._loop)
        await writer.write_headers(self._request_line, self._headers_of(request))
        await writer.write_eof(request.body)
        message, body = await connection.read()
        while message.code < 200:
            if message.code == _SWITCHING:
                raise aiohttp.ClientError
            message, body = await connection.read()
        return message, body

    async def _read(self, body: StreamReader, seconds: float) -> bytes:
        """The first KiB of the body. Reads to its end where that is near.

        Whatever is wrong with the body, it only costs the connection.
        """
        if body.is_eof():
            return body.read_nowait(EXCERPT_MAX)
        excerpt, size = b"", 0
        with contextlib.suppress(*_FAILURES):
            async with asyncio.timeout(seconds):
                while size <= _BODY_MAX and (block := await body.read(_BLOCK)):
                    excerpt += block[: EXCERPT_MAX - len(excerpt)]
                    size += len(block)
        return excerpt

    async def _dial(self, call: "_Call") -> ResponseHandler:
        """A connection to an address that the guard permits, over TLS where the URL says so."""
        call.dialled = True
        receiver = self.receiver
        call.phase = DNS if receiver.address is None else GUARD
        addresses = await self._guard.addresses(receiver)
        self.addresses, call.phase = addresses, CONNECT
        context = await self._trust() if receiver.secure else None
        async with asyncio.timeout(self._budgets.connect):
            sock = await self._connect(addresses, receiver.port)
        if receiver.secure:  # slow or not: it is the receiver's own time, of which it has the rest
            call.phase = TLS
        transport, connection = await self._loop.create_connection(
            lambda: _Connection(self._loop),
            sock=sock,
            ssl=context,
            server_hostname=receiver.host if receiver.secure else None,
        )
        if isinstance(self._trust, PinnedCertificate):
            shown = transport.get_extra_info("ssl_object")
            try:
                self._trust.check(shown and shown.getpeercert(binary_form=True))
            except OSError:
                transport.abort()
                raise
        return connection


class _Call:
    """How far one attempt has got. To the connector it is a request, by `connection_key`."""

    __slots__ = ("connection", "connection_key", "dialled", "held", "phase", "proxy")

    def __init__(self, key: ConnectionKey) -> None:
        self.connection_key = key
        self.proxy = None
        self.phase = GUARD
        self.dialled = False
        self.held: Connection | None = None
        self.connection: _Connection | None = None

    def release(self) -> None:
        """Leave the connection to the next, if its answer was read to the end."""
        if self.held is not None and self.connection is not None:
            self.connection.call = None
            self.held.release()

    def close(self) -> None:
        """Close the connection, unless it was released."""
        if self.held is not None:
            self.held.close()

    @property
    def remote_address(self) -> str | None:
        return self.connection.remote_address if self.connection is not None else None


class _Connector(aiohttp.BaseConnector):
    """Pools connections that `dial` makes: nothing of aiohttp looks up or dials by itself."""

    def __init__(self, dial: Callable[[_Call], Awaitable[ResponseHandler]], idle: float) -> None:
        super().__init__(limit=0, keepalive_timeout=idle)
        self._dial = dial

    async def _create_connection(self, req: Any, *_: object) -> ResponseHandler:
        return await self._dial(req)


class _Connection(ResponseHandler):
    """Notes what it heard since the last request, and bounds what comes before an answer."""

    heard = False
    call: "_Call | None" = None  # None: idle
    remote_address: str | None = None
    _informational = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self.remote_address = peer[0] if peer else None

    def expect_answer(self, call: _Call) -> None:
        """Before each request is sent."""
        call.connection, call.phase = self, WAIT
        self.call, self.heard, self._informational = call, False, 0
        self.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=_BLOCK)

    def data_received(self, data: bytes) -> None:
        if self.call is None:
            self.abort()  # an answer that nobody asked for: the next one would be wrong
            return
        self.heard = True
        super().data_received(data)

    def feed_data(self, data: Any, size: int = 0) -> None:
        self._informational += data[0].code < 200
        if self._informational <= _INFORMATIONAL_MAX:
            super().feed_data(data, size)
        elif self.exception() is None:
            self.set_exception(HttpProcessingError(message="no end of informational answers"))
            if self.transport is not None:
                self.transport.abort()


async def connect_directly(addresses: Sequence[IpAddress], port: int) -> socket.socket:
    """A TCP connection to whichever answers first; OSError of the most telling failure."""
    infos = [
        (
            socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET,
            socket.SOCK_STREAM,
            socket.IPPROTO_TCP,
            "",
            (str(address), port),
        )
        for address in addresses
    ]
    failures = _Failures()
    try:
        return await aiohappyeyeballs.start_connection(
            infos,
            happy_eyeballs_delay=_NEXT_SECONDS,
            loop=cast("asyncio.AbstractEventLoop", failures),
        )
    except OSError as error:
        raise min(failures.seen, key=_distance, default=error) from None


def _distance(failure: OSError) -> int:
    return _DISTANCES.get(failure.errno or 0, 4)


class _Failures:
    """All of an event loop that aiohappyeyeballs needs.

    Keeps each failure, of which the library would only make one sentence without a number.
    """

    def __init__(self) -> None:
        self.seen: list[OSError] = []

    async def sock_connect(self, sock: socket.socket, address: tuple[str, int]) -> None:
        try:
            await asyncio.get_running_loop().sock_connect(sock, address)
        except OSError as failure:
            self.seen.append(failure)
            raise
