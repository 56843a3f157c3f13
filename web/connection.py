"""HTTP connections: limits, timeouts, and documented answers to malformed requests.

aiohttp's default answers and log entries quote the request, which may contain a key, a guest's
link or a name.
"""

import asyncio
import resource
import sys
from collections.abc import Sequence
from typing import Any, cast

from aiohttp import web

from appliance.core.errors import InternalError, MalformedRequest, log_exception
from appliance.http.request import caller_key, is_in, is_loopback, networks_of, refuse
from web.middleware import set_headers

# aiohttp parses each read in one step: 256 KiB of tiny chunks would take 50 ms.
READ_AT_ONCE = 16 * 1024
_FILES_WANTED = 4096
_PER_ADDRESS = 200
_DEVICES_OF_A_NETWORK = 4


class ConnectionLimit:
    """Limits connections: `total` overall, `per_address` from one address.

    The addresses of an IPv6 /64 count as one with four times the limit: the network may be one
    device or a whole building. Trusted proxies and this machine have no limit per address.

    When `total` is reached, the address with the most connections loses its oldest one to an
    address with fewer: many connections cannot lock out a new client.
    """

    def __init__(
        self, total: int, trusted_proxies: Sequence[str] = (), per_address: int = _PER_ADDRESS
    ) -> None:
        self._total = total
        self._per_address = per_address
        self._proxies = networks_of(trusted_proxies)
        self._open: dict[str, dict[asyncio.BaseTransport, None]] = {}  # by address, oldest first
        self._address_of: dict[asyncio.BaseTransport, str] = {}

    def enter(self, connection: asyncio.BaseTransport) -> bool:
        """Count a new connection. If the limit is reached, abort it and return False."""
        peer = str((connection.get_extra_info("peername") or ["unknown"])[0])
        address = caller_key(peer)
        held = len(self._open.get(address, ()))
        limit = self._per_address * (_DEVICES_OF_A_NETWORK if ":" in address else 1)
        is_one_device = not (is_loopback(peer) or is_in(peer, self._proxies))
        if (held >= limit and is_one_device) or not self._make_room(held):
            cast("asyncio.Transport", connection).abort()
            return False
        self._open.setdefault(address, {})[connection] = None
        self._address_of[connection] = address
        return True

    def leave(self, connection: asyncio.BaseTransport) -> None:
        """Stop counting a connection; no effect if it is not counted."""
        address = self._address_of.pop(connection, None)
        if address is not None:
            del self._open[address][connection]
            if not self._open[address]:
                del self._open[address]

    def _make_room(self, held: int) -> bool:
        """Return whether an address with `held` connections gets another; closes one if needed."""
        if len(self._address_of) < self._total:
            return True
        largest = max(self._open.values(), key=len, default={})
        if len(largest) <= held:
            return False
        oldest = next(iter(largest))
        self.leave(oldest)
        cast("asyncio.Transport", oldest).abort()
        return True


def affordable_connections() -> int:
    """Return half of the process's open file limit, after raising the soft limit.

    The other half is for databases, deliveries and emails. Without this limit, `accept` would
    reach the system's limit and log errors endlessly.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FILES_WANTED and soft < hard:
        soft = _FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, _FILES_WANTED)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(soft, _FILES_WANTED) // 2


class Connection(web.RequestHandler):
    """Serves the requests of one connection, one after the other."""

    def __init__(
        self,
        server: web.Server,
        limit: ConnectionLimit,
        *,
        keep_alive: float,
        patience: float = 10.0,
        reading_patience: float = 30.0,
    ) -> None:
        """Wait `patience` seconds for the first request's head, `keep_alive` for later ones.

        Closes the connection if `limit` rejects it, or if the client reads nothing of an answer
        for `reading_patience` seconds.
        """
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=keep_alive,
            access_log=None,  # type: ignore[arg-type] # it would contain link tokens
            auto_decompress=False,  # decompression would let a small body cost much CPU time
        )
        self._limit = limit
        self._transport: asyncio.BaseTransport | None = None
        self._patience = patience
        self._reading_patience = reading_patience
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection, and start the timer for the first request."""
        if not self._limit.enter(transport):
            return
        self._transport = transport
        cast("Any", transport).max_size = READ_AT_ONCE
        super().connection_made(transport)
        # With these limits, `pause_writing` is called as soon as one byte stays unsent.
        cast("asyncio.Transport", transport).set_write_buffer_limits(high=1, low=0)
        self._head_timer = self._loop.call_later(self._patience, self._close_without_request)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop counting the connection and cancel its timers, so that an idle box sleeps."""
        for timer in (self._head_timer, self._read_timer):
            if timer is not None:
                timer.cancel()
        if self._transport is not None:
            self._limit.leave(self._transport)
            super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start checking whether the client reads: some data is still unsent."""
        super().pause_writing()
        self._check_reading(sys.maxsize)

    def resume_writing(self) -> None:
        """Stop checking whether the client reads: all data was sent."""
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
        self._read_timer = self._loop.call_later(
            self._reading_patience, self._check_reading, unsent
        )

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = InternalError.status,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it quotes the request
    ) -> web.StreamResponse:
        """Return the documented error for a request that no handler answered, and close."""
        is_client_error = status == MalformedRequest.status
        if exc is not None and not is_client_error:
            self.log_exception(exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has already started")
        return _closing_answer(MalformedRequest() if is_client_error else InternalError())

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Replace aiohttp's answer to an unknown `Expect` header by the documented error."""
        if isinstance(resp, web.HTTPExpectationFailed):
            resp = _closing_answer(MalformedRequest())
        return await super().finish_response(request, resp, start_time)

    def log_exception(self, *_words: Any, **details: Any) -> None:
        """Log an exception without its text; ignore incomplete request bodies."""
        error = details.get("exc_info")
        if isinstance(error, BaseException) and not isinstance(error, web.RequestPayloadError):
            log_exception("http: connection", error)

    def _close_without_request(self) -> None:
        if self._request_count == 0:
            self.force_close()


def _closing_answer(refusal: InternalError | MalformedRequest) -> web.Response:
    response = refuse(refusal)
    set_headers(response)
    response.force_close()
    return response
