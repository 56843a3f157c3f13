"""The HTTP client for webhooks: connect over verified TLS, send, and classify the outcome."""

import asyncio
import contextlib
import errno
import hashlib
import hmac
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
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
from appliance.webhooks.url_policy import (
    Blocked,
    EgressGuard,
    IpAddress,
    Reach,
    TargetUrl,
    reach_of,
)

GUARD, DNS, CONNECT, TLS, WAIT, DONE = "guard", "dns", "connect", "tls", "wait", "done"
SENT = (WAIT, DONE)  # the phases after the request was sent

_UNKNOWN_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
NO_ROUTE, DNS_TEMP, CONN_TIMEOUT = "no_route", "dns_temp", "conn_timeout"
BOX_OFFLINE = "box_offline"

_UNREACHABLE = {
    # The first two errors come from this machine, not from a router along the path.
    errno.ENETUNREACH: NO_ROUTE,
    errno.ENETDOWN: NO_ROUTE,
    errno.EHOSTUNREACH: "unreachable",
    errno.EADDRNOTAVAIL: "unreachable",
}


def _code(error: Exception, phase: str) -> str:  # noqa: PLR0911 - a table of cases
    match error:
        case Blocked():
            return "blocked"
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


@lru_cache(maxsize=8)  # responses within one second have the same Date header
def _instant(date: str) -> int | None:
    """Parse a Date header as ms since 1970. Return None if it is empty or invalid."""
    try:
        return int(parsedate_to_datetime(date).timestamp()) * 1000
    except (ValueError, OverflowError):
        return None


def _printable(excerpt: bytes) -> str | None:
    """Decode a response excerpt for display. Control characters are escaped."""
    text = excerpt.decode("utf-8", "backslashreplace")
    escaped = "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
    return escaped or None


# Returns the TLS context for a receiver. May read files. Raises ssl.SSLError if the trusted
# certificates cannot be used.
Trust = Callable[[], Awaitable[ssl.SSLContext]]


class SystemTrust:
    """Trusts the certificate authorities that this machine trusts."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None

    async def __call__(self) -> ssl.SSLContext:
        """Return the TLS context. The first call reads the authorities in a thread (~40 ms)."""
        if self._context is None:
            self._context = _modern(await asyncio.to_thread(ssl.create_default_context))
        return self._context


class OwnAuthority:
    """Trusts only certificates signed by the given authorities.

    A receiver's certificate must also match its host name and must not have expired.
    """

    def __init__(self, ca: str) -> None:
        """`ca` is PEM text from `parse_ca`.

        A receiver's chain may end at any certificate in `ca`, not only at a root.
        """
        self._ca = ca
        self._context: ssl.SSLContext | None = None

    async def __call__(self) -> ssl.SSLContext:
        """Return the TLS context. Raises ssl.SSLError if the certificates cannot be used."""
        if self._context is None:
            context = _modern(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.load_verify_locations(cadata=self._ca)
            self._context = context
        return self._context


class PinnedCertificate:
    """Trusts exactly one certificate. Does not check its issuer, name or dates.

    The handshake proves that the receiver has the certificate's private key. Call `check` after the
    handshake, before sending the request.
    """

    def __init__(self, digest: bytes) -> None:
        """`digest` is the SHA-256 digest of the DER-encoded certificate."""
        self._digest = digest
        self._context = _modern(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE  # `check` verifies the certificate instead

    async def __call__(self) -> ssl.SSLContext:
        """Return the TLS context."""
        return self._context

    def check(self, certificate: bytes | None) -> None:
        """Raise SSLCertVerificationError unless `certificate` (DER) is the pinned certificate."""
        digest = hashlib.sha256(certificate or b"").digest()
        if not hmac.compare_digest(digest, self._digest):
            raise ssl.SSLCertVerificationError("not the pinned certificate")


def _modern(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


# Opens a TCP connection to the port at one of the addresses. Raises OSError if all addresses fail.
Connect = Callable[[Sequence[IpAddress], int], Awaitable[socket.socket]]

USER_AGENT = "venuebox-webhooks/1"
EXCERPT_MAX = 1024
_BODY_MAX = 16 * 1024  # after a longer response, the connection is closed
_BLOCK = 4096
_INFORMATIONAL_MAX = 16
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=None)  # `Client.post` limits the time
_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
_NEXT_ADDRESS_SECONDS = 0.25  # delay before the next address is tried in parallel

# How far from the receiver each error occurs (0: at the receiver). If all addresses fail, the error
# with the smallest number is reported. "No route" (5) is therefore reported only if no attempt got
# closer to the receiver.
_DISTANCES = {
    errno.ECONNREFUSED: 0, errno.ECONNRESET: 1, errno.ETIMEDOUT: 2, errno.EHOSTUNREACH: 3,
    errno.ENETUNREACH: 5, errno.ENETDOWN: 5, errno.EADDRNOTAVAIL: 6, errno.EAFNOSUPPORT: 6,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Budgets:
    """Time limits for an attempt, in seconds. The interface defines `total` (section 6.3).

    `connect` covers TCP only, not DNS or TLS. `drain` covers reading the response body.
    """

    total: float = 10.0
    connect: float = 4.0
    drain: float = 1.0
    # Seconds that a connection may be idle. aiohttp closes it within twice this time.
    idle: float = 2.0


@dataclass(frozen=True, slots=True)
class Request:
    """The body of one request, and the headers specific to it."""

    headers: Mapping[str, str]
    body: bytes


_FAILURES = (OSError, Blocked, aiohttp.ClientError, HttpProcessingError)


class Client:
    """Sends requests to one receiver. Keeps idle connections open for reuse for a few seconds.

    Does not follow redirects, use proxies, store cookies or decompress responses.
    """

    def __init__(
        self,
        receiver: TargetUrl,
        guard: EgressGuard | None,
        connect: Connect,
        trust: Trust,
        budgets: Budgets,
    ) -> None:
        """If `guard` is None, the receiver is in this process and `connect` needs no address."""
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
            host=receiver.host, port=receiver.port, is_ssl=receiver.secure, ssl=True,
            proxy=None, proxy_auth=None, proxy_headers_hash=None,
        )  # fmt: skip
        self._in_use = 0
        self._closed = False
        known = None if receiver.address is None else [receiver.address]
        self.addresses: Sequence[IpAddress] | None = known

    @property
    def is_local(self) -> bool:
        """Whether the receiver is known to be on the venue's network or in this process."""
        known = self.addresses
        return known is not None and all(reach_of(each) is not Reach.PUBLIC for each in known)

    def text(self, request: Request) -> bytes:
        """Return the bytes that `post` sends for `request`, for the delivery log."""
        lines = [f"{name}: {value}\r\n" for name, value in self._headers_of(request).items()]
        return f"{self._request_line}\r\n{''.join(lines)}\r\n".encode() + request.body

    async def post(self, request: Request) -> Outcome:
        """Send `request` within the total time limit. Return every failure as an outcome.

        If the receiver responds, the outcome depends only on the status code. Errors while the
        response body is read are ignored.
        """
        call = _Call(self._key)
        started = self._loop.time()
        self._in_use += 1
        try:
            try:
                async with asyncio.timeout(self._budgets.total) as limit:
                    message, body = await self._send(request, call)
            except _FAILURES as error:
                phase = GUARD if isinstance(error, Blocked) else call.phase
                code = "timeout" if limit.expired() else _code(error, phase)
                return Outcome(phase, code, remote_address=call.remote_address)
            remaining = started + self._budgets.total - self._loop.time()
            excerpt = await self._read(body, max(0.0, min(remaining, self._budgets.drain)))
            call.release()
            return Outcome(
                DONE,
                "delivered" if message.code // 100 == 2 else f"http_{message.code}",
                message.code,
                call.remote_address,
                _printable(excerpt),
                receiver_time=_instant(message.headers.get("Date", "")),
            )
        finally:
            call.close()
            self._in_use -= 1
            if self._closed:
                await self.close()

    async def close(self) -> None:
        """Close idle connections now, and busy connections after their response."""
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
                return await self._exchange(request, call)
            except aiohttp.ClientConnectionError:
                # The receiver closed the reused connection while it was idle, so use another
                # connection.
                if call.dialled or call.connection is None or call.connection.heard:
                    raise
                call.close()

    async def _exchange(
        self, request: Request, call: "_Call"
    ) -> tuple[RawResponseMessage, StreamReader]:
        """Send the request. Return the response's head and its unread body.

        Does not use aiohttp's `ClientSession`, which would add redirects, cookies and timers.
        """
        call.pooled = await self._connector.connect(cast("Any", call), [], _NO_TIMEOUT)
        call.connection = connection = cast("_Connection", call.pooled.protocol)
        connection.expect_response(call)
        writer = StreamWriter(connection, self._loop)
        await writer.write_headers(self._request_line, self._headers_of(request))
        await writer.write_eof(request.body)
        message, body = await connection.read()
        while message.code < 200:
            if message.code == 101:  # 101 means "switching protocols"
                raise aiohttp.ClientError
            message, body = await connection.read()
        return message, body

    async def _read(self, body: StreamReader, seconds: float) -> bytes:
        """Return the first KiB of the body.

        Read up to 16 KiB, because the connection can be reused only if the body was read to its
        end.
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
        """Connect to an address that the guard permits. Use TLS for https."""
        call.dialled = True
        receiver = self.receiver
        call.phase = DNS if receiver.address is None else GUARD
        addresses = await self._guard.addresses(receiver) if self._guard else ()
        self.addresses, call.phase = addresses, CONNECT
        context = await self._trust() if receiver.secure else None
        async with asyncio.timeout(self._budgets.connect):
            sock = await self._connect(addresses, receiver.port)
        if receiver.secure:  # the handshake has no time limit of its own, only the total limit
            call.phase = TLS
        transport, connection = await self._loop.create_connection(
            lambda: _Connection(self._loop),
            sock=sock,
            ssl=context,
            server_hostname=receiver.host if receiver.secure else None,
        )
        if isinstance(self._trust, PinnedCertificate):
            tls = transport.get_extra_info("ssl_object")
            try:
                self._trust.check(tls and tls.getpeercert(binary_form=True))
            except OSError:
                transport.abort()
                raise
        return connection


@dataclass(slots=True, eq=False)
class _Call:
    """The progress of one attempt. aiohttp's connector reads `connection_key` and `proxy`."""

    connection_key: ConnectionKey
    proxy: None = None
    phase: str = GUARD
    dialled: bool = False
    pooled: Connection | None = None
    connection: "_Connection | None" = None

    def release(self) -> None:
        """Return the connection to the pool, which keeps it if the whole response was read."""
        if self.pooled is not None and self.connection is not None:
            self.connection.call = None
            self.pooled.release()

    def close(self) -> None:
        """Close the connection, unless it was released."""
        if self.pooled is not None:
            self.pooled.close()

    @property
    def remote_address(self) -> str | None:
        return self.connection.remote_address if self.connection is not None else None


class _Connector(aiohttp.BaseConnector):
    """Pools the connections that `dial` opens. aiohttp itself does not resolve names or connect."""

    def __init__(self, dial: Callable[[_Call], Awaitable[ResponseHandler]], idle: float) -> None:
        super().__init__(limit=0, keepalive_timeout=idle)
        self._dial = dial

    async def _create_connection(self, req: Any, *_: object) -> ResponseHandler:
        return await self._dial(req)


class _Connection(ResponseHandler):
    """A connection that accepts at most 16 informational (1xx) responses per request.

    `heard` is True if data has arrived since the last request was sent.
    """

    heard = False
    call: "_Call | None" = None  # None while idle
    remote_address: str | None = None
    _informational = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self.remote_address = peer[0] if peer else None

    def expect_response(self, call: _Call) -> None:
        """Prepare for the response to the next request."""
        call.connection, call.phase = self, WAIT
        self.call, self.heard, self._informational = call, False, 0
        self.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=_BLOCK)

    def data_received(self, data: bytes) -> None:
        if self.call is None:
            self.abort()  # unsolicited data would be taken for the response to the next request
            return
        self.heard = True
        # Parse the head first: a parse error in the body would discard a head in the same data.
        head, end, body = data.partition(b"\r\n\r\n")
        super().data_received(head + end)
        if body:
            super().data_received(body)

    def feed_data(self, data: Any, size: int = 0) -> None:
        self._informational += data[0].code < 200
        if self._informational <= _INFORMATIONAL_MAX:
            super().feed_data(data, size)
        elif self.exception() is None:
            self.set_exception(HttpProcessingError(message="too many informational responses"))
            if self.transport is not None:
                self.transport.abort()


async def connect_directly(addresses: Sequence[IpAddress], port: int) -> socket.socket:
    """Try the addresses at most 0.25 s apart, and return the first connection established.

    If all addresses fail, raises the OSError that occurred closest to the receiver (see
    `_DISTANCES`).
    """
    infos = [
        (_FAMILIES[each.version], socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(each), port))
        for each in addresses
    ]
    failures = _Failures()
    try:
        return await aiohappyeyeballs.start_connection(
            infos,
            happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS,
            loop=cast("asyncio.AbstractEventLoop", failures),
        )
    except OSError as error:
        raise min(failures.seen, key=_distance, default=error) from None


def _distance(failure: OSError) -> int:
    return _DISTANCES.get(failure.errno or 0, 4)


class _Failures:
    """Replaces the event loop in aiohappyeyeballs, and collects the connection failures.

    The library itself combines different failures into one OSError without an errno.
    """

    def __init__(self) -> None:
        self.seen: list[OSError] = []

    async def sock_connect(self, sock: socket.socket, address: tuple[str, int]) -> None:
        try:
            await asyncio.get_running_loop().sock_connect(sock, address)
        except OSError as failure:
            self.seen.append(failure)
            raise
