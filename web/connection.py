"""HTTP connections: limits, timeouts, and documented responses to malformed requests.

aiohttp's own responses and log entries are replaced, because they contain parts of the
request, such as an API key, a guest's link or a name.
"""

import asyncio
import resource
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from aiohttp import EMPTY_PAYLOAD, StreamReader, web

from appliance.core.errors import (
    ApiError,
    HeadersTooLarge,
    InternalError,
    MalformedRequest,
    log_exception,
)
from appliance.http.request import BY_RELAY, caller_key, is_in, is_loopback, networks_of, refuse
from web.middleware import set_headers

# Maximum number of bytes per read. aiohttp parses all bytes of a read in one step, which blocks the
# event loop. With asyncio's default of 256 KiB, a body of tiny chunks would block it for 50 ms.
READ_AT_ONCE = 16 * 1024
KEEP_ALIVE = 30.0  # seconds that an idle connection stays open
# Seconds that an idle connection from a proxy stays open, which is longer than Caddy, nginx and Go
# keep theirs (60 to 120 s). Otherwise, a proxy could send a request just as the box closes the
# connection, and return 502 to its client.
PROXY_KEEP_ALIVE = 150.0
_FIRST_REQUEST_SECONDS = 10.0  # a connection that has sent no request by then is closed
_READING_SECONDS = 30.0  # a client that reads nothing of a response for this long is disconnected
# Maximum number of bytes of a request's line and headers. A browser sends the box all cookies of
# its domain, which a website of the same name may fill with those of advertisers.
HEAD_MAX = 64 * 1024
_FILES_WANTED = 4096
_PER_ADDRESS = 200
_DEVICES_OF_A_NETWORK = 4  # the limit for an IPv6 /64 network, as a multiple of _PER_ADDRESS


class ConnectionLimit:
    """Limits the connections to `total` overall, and to `per_address` from one address.

    An IPv6 /64 network may be one device or a whole building, so it counts as one address with
    four times the limit. Trusted proxies and this machine have no limit per address.

    When `total` is reached, a new connection replaces the oldest connection from the address with
    the most connections, unless the new client's address already has as many. This way, no
    client can lock out the others.
    """

    def __init__(
        self, total: int, trusted_proxies: Sequence[str] = (), per_address: int = _PER_ADDRESS
    ) -> None:
        self._total = total
        self._per_address = per_address
        self.trust(trusted_proxies)
        # Connections by address, oldest first.
        self._open: dict[str, dict[asyncio.BaseTransport, None]] = {}
        self._address_of: dict[asyncio.BaseTransport, str] = {}

    def trust(self, proxies: Sequence[str]) -> None:
        """Take `proxies`, addresses or networks, for proxies that speak for many devices."""
        self._proxies = networks_of(proxies)

    def enter(self, connection: asyncio.BaseTransport) -> bool:
        """Count a new connection. If a limit is reached, abort the connection and return False."""
        by_relay = bool(connection.get_extra_info(BY_RELAY))
        address = caller_key(_peer_of(connection), by_relay=by_relay)
        held = len(self._open.get(address, ()))
        limit = self._per_address * (_DEVICES_OF_A_NETWORK if ":" in address else 1)
        is_one_device = not self.speaks_for_many(connection)
        if (held >= limit and is_one_device) or not self._make_room(held):
            cast("asyncio.Transport", connection).abort()
            return False
        self._open.setdefault(address, {})[connection] = None
        self._address_of[connection] = address
        return True

    def speaks_for_many(self, connection: asyncio.BaseTransport) -> bool:
        """Return whether the connection comes from a trusted proxy, or from this machine."""
        peer = _peer_of(connection)
        return is_loopback(peer) or is_in(peer, self._proxies)

    def leave(self, connection: asyncio.BaseTransport) -> None:
        """Stop counting a connection. Does nothing if it is not counted."""
        address = self._address_of.pop(connection, None)
        if address is not None:
            del self._open[address][connection]
            if not self._open[address]:
                del self._open[address]

    def _make_room(self, held: int) -> bool:
        """Return whether an address with `held` connections may open another connection.

        If the total is reached, abort the oldest connection from the address with the most
        connections, provided that this address has more than `held`.
        """
        if len(self._address_of) < self._total:
            return True
        largest = max(self._open.values(), key=len, default={})
        if len(largest) <= held:
            return False
        oldest = next(iter(largest))
        self.leave(oldest)
        cast("asyncio.Transport", oldest).abort()
        return True


def _peer_of(connection: asyncio.BaseTransport) -> str:
    return str((connection.get_extra_info("peername") or ["unknown"])[0])


def affordable_connections() -> int:
    """Return the maximum number of connections, which is half of the limit on open files.

    First raises the soft limit to 4096 files, if the hard limit allows it. Returns at most 2048.
    The other half of the files is for databases, deliveries and emails. Without a maximum,
    connections could exhaust the limit. Every `accept` would then fail and log an error.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FILES_WANTED and soft < hard:
        soft = _FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, _FILES_WANTED)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(soft, _FILES_WANTED) // 2


class Connection(web.RequestHandler):
    """Handles the requests on one connection, one after another."""

    def __init__(
        self,
        server: web.Server,
        limit: ConnectionLimit,
        answer_unread: Callable[[ApiError, bytes], web.Response] = lambda why, _head: refuse(why),
        *,
        keep_alive: float = KEEP_ALIVE,
    ) -> None:
        """Wait up to `keep_alive` seconds for each further request, longer for a proxy's.

        The connection is closed if `limit` rejects it. `answer_unread` returns the answer to a
        request that could not be read, by its error and its first bytes.
        """
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=keep_alive,
            access_log=None,  # type: ignore[arg-type] # the log would contain tokens from links
            auto_decompress=False,  # a small compressed body could cost a lot of CPU time
            max_field_size=HEAD_MAX,
        )
        self._limit = limit
        self._answer_unread = answer_unread
        self._head = bytearray()  # of the request that is arriving, or of the last one
        self._is_head_over = self._is_too_large = False
        self._body: StreamReader = EMPTY_PAYLOAD
        self._transport: asyncio.BaseTransport | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection, and start the timer for the first request."""
        if not self._limit.enter(transport):
            return
        self._transport = transport
        if self._limit.speaks_for_many(transport):
            self._keepalive_timeout = max(self._keepalive_timeout, PROXY_KEEP_ALIVE)
        cast("Any", transport).max_size = READ_AT_ONCE
        super().connection_made(transport)
        # With these limits, asyncio calls `pause_writing` as soon as any data remains unsent.
        cast("asyncio.Transport", transport).set_write_buffer_limits(high=1, low=0)
        self._head_timer = self._loop.call_later(
            _FIRST_REQUEST_SECONDS, self._close_without_request
        )

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop counting the connection and cancel its timers."""
        for timer in (self._head_timer, self._read_timer):
            if timer is not None:
                timer.cancel()
        if self._transport is not None:
            self._limit.leave(self._transport)
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the received bytes. Refuse a request whose head is longer than HEAD_MAX."""
        if self._body.is_eof():  # otherwise it is a part of the last request's body
            if self._is_head_over:
                self._head.clear()
                self._is_head_over = False
            room = HEAD_MAX - len(self._head)
            self._head += data[:room]
            if len(data) > room:
                self._parse(data[:room])
                if self._is_head_over:
                    self.data_received(data[room:])
                else:
                    self._is_too_large = True
                    self._parse(b"\0")  # no head may contain it, so the parser gives up
                return
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        count = self._request_count
        super().data_received(data)
        if self._request_count != count:
            self._is_head_over, self._body = True, self._messages[-1][1]

    def pause_writing(self) -> None:
        """Start checking that the client is reading, because some data is still unsent."""
        super().pause_writing()
        self._check_reading(sys.maxsize)

    def resume_writing(self) -> None:
        """Stop checking that the client is reading, because all data has been sent."""
        super().resume_writing()
        if self._read_timer is not None:
            self._read_timer.cancel()

    def _check_reading(self, unsent_before: int) -> None:
        """Close the connection if the client has read nothing since the last check."""
        if self.transport is None:
            return
        unsent = self.transport.get_write_buffer_size()
        if unsent >= unsent_before:
            self.transport.abort()
            return
        self._read_timer = self._loop.call_later(_READING_SECONDS, self._check_reading, unsent)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = InternalError.status,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - not used, because it contains parts of the request
    ) -> web.StreamResponse:
        """Return the documented error for a failed request, and close the connection.

        Raises ConnectionError if part of a response has already been sent.
        """
        is_client_error = status == MalformedRequest.status
        if exc is not None and not is_client_error:
            self.log_exception(exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the response has already started")
        if not is_client_error:
            return self._closing_answer(InternalError())
        why = HeadersTooLarge() if self._is_too_large else MalformedRequest()
        return self._closing_answer(why)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the response. For an unknown `Expect` header, send the documented error instead."""
        if isinstance(resp, web.HTTPExpectationFailed):
            resp = self._closing_answer(MalformedRequest())
        return await super().finish_response(request, resp, start_time)

    def log_exception(self, *_words: Any, **details: Any) -> None:
        """Log an exception without its message, unless the client sent an incomplete body."""
        error = details.get("exc_info")
        if isinstance(error, BaseException) and not isinstance(error, web.RequestPayloadError):
            log_exception("http: connection", error)

    def _closing_answer(self, refusal: ApiError) -> web.StreamResponse:
        response = self._answer_unread(refusal, bytes(self._head))
        set_headers(response)
        response.force_close()
        return response

    def _close_without_request(self) -> None:
        if self._request_count == 0:
            self.force_close()
