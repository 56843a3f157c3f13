"""The HTTP client for webhooks: connect over verified TLS, send, and classify the outcome.

A valid status line decides the outcome. Whatever is wrong with the response after it only closes
the connection, and is noted beside the outcome.
"""

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import cast

from httptools import HttpParserError, HttpResponseParser
from msgspec import Struct

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


class NotHttp(Exception):
    """The receiver sent something else than a valid status line."""


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
        case ConnectionError():
            return "reset"
        case OSError():
            return _UNREACHABLE.get(error.errno or 0, "failed")
    return "protocol"


@lru_cache(maxsize=8)  # responses within one second have the same Date header
def _instant(date: bytes) -> int | None:
    """Parse a Date header as ms since 1970. Return None if it is empty or invalid."""
    try:
        return int(parsedate_to_datetime(date.decode("latin-1")).timestamp()) * 1000
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

        A receiver's chain may end at any certificate in `ca`, not only at a root. So `ca` may also
        be the receiver's own certificate.
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


def _modern(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


# Opens a TCP connection to the port at one of the addresses. Raises OSError if all addresses fail.
Connect = Callable[[Sequence[IpAddress], int], Awaitable[socket.socket]]

USER_AGENT = "venuebox-webhooks/1"
EXCERPT_MAX = 1024
_HEAD_MAX = 64 * 1024
_BODY_MAX = 16 * 1024  # after a longer response, the connection is closed
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [^\r\n]*)?\r?")
_EMPTY_LINE = re.compile(rb"\n\r?\n")
_SWITCHING_PROTOCOLS = 101
_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
_NEXT_ADDRESS_SECONDS = 0.5

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

    `connect` covers TCP only, not DNS or TLS. `drain` covers what follows the status line. A
    connection may be idle for `idle` seconds.
    """

    total: float = 10.0
    connect: float = 4.0
    drain: float = 1.0
    idle: float = 3.0


class Request(Struct, frozen=True):
    """The body of one request, and the headers specific to it."""

    headers: Mapping[str, str]
    body: bytes


class _Attempt(Struct):
    """How far an attempt has come, and the connection that it uses, if any."""

    phase: str = GUARD
    connection: "_Connection | None" = None
    address: str | None = None

    def use(self, connection: "_Connection") -> "_Connection":
        self.phase, self.connection, self.address = WAIT, connection, connection.address
        return connection


class Client:
    """Sends requests to one receiver. Keeps idle connections open for reuse for a few seconds.

    Does not follow redirects, use proxies, store cookies or decompress responses.
    """

    def __init__(
        self, receiver: TargetUrl, guard: EgressGuard | None,
        connect: Connect, trust: Trust, budgets: Budgets,
    ) -> None:  # fmt: skip
        """If `guard` is None, the receiver is in this process and `connect` needs no address."""
        self.receiver = receiver
        self._guard = guard
        self._connect = connect
        self._trust = trust
        self._budgets = budgets
        self._loop = asyncio.get_running_loop()
        self._head = (
            f"POST {receiver.target} HTTP/1.1\r\nHost: {receiver.authority}\r\n"
            f"User-Agent: {USER_AGENT}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
            "Content-Type: application/json\r\n"
        )
        self._idle: list[_Connection] = []
        self._closed = False
        known = None if receiver.address is None else [receiver.address]
        self.addresses: Sequence[IpAddress] | None = known

    @property
    def is_local(self) -> bool:
        """Whether the receiver is known to be on the venue's network or in this process."""
        known = self.addresses
        return known is not None and all(reach_of(each) is not Reach.PUBLIC for each in known)

    def text(self, request: Request) -> bytes:
        """Return the bytes that `post` sends for `request`."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        length = f"Content-Length: {len(request.body)}\r\n\r\n"
        return (self._head + lines + length).encode() + request.body

    async def post(self, request: Request) -> Outcome:
        """Send `request` within the total time limit. Return every failure as an outcome.

        If a valid status line arrives, the outcome depends only on the status code.
        """
        attempt, answer = _Attempt(), None
        try:
            async with asyncio.timeout(self._budgets.total) as limit:
                answer = await self._ask(self.text(request), attempt)
                if not answer.end.done():
                    soon = self._loop.time() + self._budgets.drain
                    limit.reschedule(min(soon, limit.when() or soon))
                    await answer.end
        except (OSError, Blocked, NotHttp) as error:
            if answer is None:
                phase = GUARD if isinstance(error, Blocked) else attempt.phase
                code = "timeout" if limit.expired() else _code(error, phase)
                return Outcome(phase, code, remote_address=attempt.address)
        finally:
            self._release(attempt.connection)
        status, at, told = answer.status, _instant(answer.date), answer.describe()
        code = "delivered" if status // 100 == 2 else f"http_{status}"
        return Outcome(DONE, code, status, attempt.address, told, receiver_time=at)

    async def close(self) -> None:
        """Close idle connections now, and busy connections after their response."""
        self._closed = True
        for connection in self._idle:
            connection.wake()
            connection.transport.abort()
        await asyncio.sleep(0)  # the event loop closes the sockets

    async def _ask(self, request: bytes, attempt: _Attempt) -> "_Answer":
        """Send the request. Return the answer as soon as its status line has arrived.

        If the receiver closes an idle connection without an answer, send it on a new one.
        """
        while self._idle:
            idle = self._idle.pop()
            if idle.wake():
                try:
                    return await attempt.use(idle).ask(request)
                except OSError:
                    if idle.heard:
                        raise
                    break
        return await attempt.use(await self._dial(attempt)).ask(request)

    async def _dial(self, attempt: _Attempt) -> "_Connection":
        """Connect to an address that the guard permits. Use TLS for https."""
        receiver, trust = self.receiver, self._trust
        attempt.phase = DNS if receiver.address is None else GUARD
        addresses = await self._guard.addresses(receiver) if self._guard else ()
        self.addresses, attempt.phase = addresses, CONNECT
        context = await trust() if receiver.secure else None
        async with asyncio.timeout(self._budgets.connect):
            sock = await self._connect(addresses, receiver.port)
        if receiver.secure:  # the handshake has no time limit of its own, only the total limit
            attempt.phase = TLS
        name = receiver.host if receiver.secure else None
        _transport, connection = await self._loop.create_connection(
            _Connection, sock=sock, ssl=context, server_hostname=name
        )
        return connection

    def _release(self, connection: "_Connection | None") -> None:
        """Keep the connection for the next request, if it can be used again, or close it."""
        if connection is None:
            return
        if not self._closed and connection.rest(self._budgets.idle):
            self._idle.append(connection)
        else:
            connection.transport.abort()


class _Connection(asyncio.Protocol):
    """A connection to a receiver.

    `answer` is that to the request under way, or None while idle. `heard` tells whether any byte
    of it has arrived.
    """

    transport: asyncio.Transport
    address: str | None = None
    answer: "_Answer | None" = None
    heard = False
    _alarm: asyncio.TimerHandle | None = None

    async def ask(self, request: bytes) -> "_Answer":
        """Send a request. Return the answer at its status line.

        Raises OSError if the connection is closed before, and NotHttp if there is no status line.
        """
        self.answer = answer = _Answer()
        self.heard = False
        self.transport.write(request)
        await answer.status_line
        return answer

    def rest(self, seconds: float) -> bool:
        """Be idle for at most `seconds`. Return False if the connection cannot be used again."""
        answer, self.answer = self.answer, None
        if answer is None or not answer.is_whole or self.transport.is_closing():
            return False
        self._alarm = asyncio.get_running_loop().call_later(seconds, self.transport.abort)
        return True

    def wake(self) -> bool:
        """Be idle no longer. Return False if the connection was closed meanwhile."""
        if self._alarm is not None:
            self._alarm.cancel()
        return not self.transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if peer else None

    def data_received(self, data: bytes) -> None:
        self.heard = True
        if self.answer is not None:
            self.answer.feed(data)
        else:  # it would be read as the response to the next request
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.answer is not None:
            self.answer.cut(exc or ConnectionResetError())


class _Answer:
    """The answer to one request, as it arrives. httptools calls the methods `on_…`.

    `status_line` is done when `status` is known, and `end` when nothing more needs to be read. If
    the answer `is_whole`, the connection can then be used again.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.status_line: asyncio.Future[None] = loop.create_future()
        self.end: asyncio.Future[None] = loop.create_future()
        self.status = 0
        self.date = b""
        self.is_whole = False
        self._unread = b""  # bytes received before the status line is complete
        self._parser: HttpResponseParser | None = None
        self._room = _HEAD_MAX
        self._excerpt = b""
        self._fault = "an incomplete head"

    def feed(self, data: bytes) -> None:
        """Read more of the answer."""
        if self.end.done():
            self.is_whole = False  # there must be exactly one response to a request
            return
        if self._parser is None:
            self._unread += data
            if not self._read_status_line():
                return
            data, self._parser = self._unread, HttpResponseParser(self)
            _settle(self.status_line)
        self._room -= len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            self._fault, self._room = str(error), -1
        if self._room < 0:
            _settle(self.end)

    def cut(self, error: Exception) -> None:
        """Note that nothing more will arrive because of `error`."""
        _settle(self.status_line, error)
        _settle(self.end)

    def describe(self) -> str | None:
        """Return the start of the body for display, and the fault of the response."""
        note = f"answered {self.status}, but with: {self._fault}" if self._fault else ""
        return "\n".join(filter(None, (_printable(self._excerpt), note))) or None

    def on_message_begin(self) -> None:
        self.is_whole = False  # a second answer may follow the first

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"date":
            self.date = value

    def on_headers_complete(self) -> None:
        self._room, self._fault = _BODY_MAX, ""

    def on_body(self, body: bytes) -> None:
        self._excerpt += body[: EXCERPT_MAX - len(self._excerpt)]

    def on_message_complete(self) -> None:
        if self._parser is not None and not self.end.done():
            self.is_whole, self._parser = self._parser.should_keep_alive(), None
            _settle(self.end)

    def _read_status_line(self) -> bool:
        """Skip informational answers (1xx). Return True once a final status line has arrived."""
        while (end := self._unread.find(b"\n")) >= 0:
            found = _STATUS_LINE.fullmatch(self._unread, 0, end)
            self.status = int(found[1]) if found else 0
            if self.status >= 200:
                return True
            if self.status in {0, _SWITCHING_PROTOCOLS}:
                self.cut(NotHttp())
                return False
            head = _EMPTY_LINE.search(self._unread, end)
            if head is None:
                break
            self._room -= head.end()
            self._unread = self._unread[head.end() :]
        if len(self._unread) > self._room:
            self.cut(NotHttp())
        return False


def _settle(future: asyncio.Future[None], error: Exception | None = None) -> None:
    """Set the future's result, unless it has one or was cancelled because the time is over."""
    if error is not None and not future.done():
        future.set_exception(error)
    elif not future.done():
        future.set_result(None)


async def connect_directly(addresses: Sequence[IpAddress], port: int) -> socket.socket:
    """Return a connection to the first address that accepts one. All but the last have 0.5 s each.

    If all fail, raises the OSError that occurred closest to the receiver (see `_DISTANCES`).
    """
    failures = []
    for address in addresses:
        is_last = address is addresses[-1]
        sock = socket.socket(_FAMILIES[address.version], socket.SOCK_STREAM)
        sock.settimeout(0)
        try:
            async with asyncio.timeout(None if is_last else _NEXT_ADDRESS_SECONDS):
                await asyncio.get_running_loop().sock_connect(sock, (str(address), port))
        except BaseException as failure:
            sock.close()
            if not isinstance(failure, OSError):
                raise
            failures.append(failure)
        else:
            return sock
    raise min(failures, key=_distance)


def _distance(failure: OSError) -> int:
    return _DISTANCES.get(failure.errno or 0, 4)
