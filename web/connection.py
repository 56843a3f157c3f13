"""Somebody's connection to the box: what is no HTTP gets an answer like every other fault.

The library's own answer quotes the request, and so does its log: a key, a guest's link or a
name may stand in what could not be read.
"""

import asyncio
import resource
import sys
from collections.abc import Sequence
from typing import Any, cast

from aiohttp import web

from appliance.core.errors import InternalError, MalformedRequest, log_exception
from appliance.http.json import refuse
from appliance.http.request import household_of, is_in, is_loopback, networks_of
from web.middleware import set_headers

# What is read is parsed at once, and 256 KiB of the smallest chunks take 50 ms.
READ_AT_ONCE = 16 * 1024
_FILES_WANTED = 4096
_PER_ADDRESS = 200
_DEVICES_OF_A_NETWORK = 4


class ConnectionLimit:
    """Counts connections: at most `total`, and at most `per_address` from one address.

    With IPv6 the addresses of a /64 count as one, which may have four times as many: it may be one
    device or a whole building. A proxy speaks for many devices, so trusted ones and this machine
    itself have no limit of their own.

    When all places are taken, the address that holds the most of them loses its oldest one to
    whoever holds fewer: however many addresses somebody has, a newcomer gets in.
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
        """Count a new connection; False, and it is closed, when there is no place for it."""
        peer = str((connection.get_extra_info("peername") or ["unknown"])[0])
        address = household_of(peer)
        held = len(self._open.get(address, ()))
        most = self._per_address * (_DEVICES_OF_A_NETWORK if ":" in address else 1)
        is_one_device = not (is_loopback(peer) or is_in(peer, self._proxies))
        if (held >= most and is_one_device) or not self._has_place(held):
            cast("asyncio.Transport", connection).abort()
            return False
        self._open.setdefault(address, {})[connection] = None
        self._address_of[connection] = address
        return True

    def leave(self, connection: asyncio.BaseTransport) -> None:
        """A connection is gone. One that was not counted, or not any more, changes nothing."""
        address = self._address_of.pop(connection, None)
        if address is not None:
            del self._open[address][connection]
            if not self._open[address]:
                del self._open[address]

    def _has_place(self, held: int) -> bool:
        """Whether there is a place for who holds so many, made by closing another's if need be."""
        if len(self._address_of) < self._total:
            return True
        most = max(self._open.values(), key=len, default={})
        if len(most) <= held:
            return False
        oldest = next(iter(most))
        self.leave(oldest)
        cast("asyncio.Transport", oldest).abort()
        return True


def affordable_connections() -> int:
    """Half of the files that the process may open, after asking for more of them.

    The other half is for the databases, for deliveries and for letters. Without a limit of
    our own the system's would be met in `accept`, which then fails, and says so, without end.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FILES_WANTED and soft < hard:
        soft = _FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, _FILES_WANTED)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(soft, _FILES_WANTED) // 2


class Connection(web.RequestHandler):
    """Carries requests, one after the other."""

    __slots__ = ("_alarm", "_limit", "_patience", "_reading_patience", "_transport", "_unread")

    def __init__(
        self,
        server: web.Server,
        limit: ConnectionLimit,
        *,
        keep_alive: float,
        patience: float = 10.0,
        reading_patience: float = 30.0,
    ) -> None:
        """Wait `patience` seconds for the head of the first request, `keep_alive` for others.

        Hangs up at once on whom `limit` does not let in, and on who has read nothing of an
        answer for `reading_patience` seconds.
        """
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=keep_alive,
            access_log=None,  # type: ignore[arg-type] # it would hold the secrets of guests' links
            auto_decompress=False,  # unpacking would let a small body keep the box busy
        )
        self._limit = limit
        self._transport: asyncio.BaseTransport | None = None
        self._patience = patience
        self._reading_patience = reading_patience
        self._alarm: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As asyncio says."""
        if not self._limit.enter(transport):
            return
        self._transport = transport
        cast("Any", transport).max_size = READ_AT_ONCE
        super().connection_made(transport)
        # So `pause_writing` tells of the first byte that the other side leaves with us.
        cast("asyncio.Transport", transport).set_write_buffer_limits(high=1, low=0)
        self._alarm = self._loop.call_later(self._patience, self._leave_unless_asked)

    def connection_lost(self, exc: BaseException | None) -> None:
        """As asyncio says. Nothing of it stays, not even an alarm: an idle box sleeps."""
        for alarm in (self._alarm, self._unread):
            if alarm is not None:
                alarm.cancel()
        if self._transport is not None:
            self._limit.leave(self._transport)
            super().connection_lost(exc)

    def pause_writing(self) -> None:
        """As asyncio says: what was written is not read, or not yet."""
        super().pause_writing()
        self._look_whether_it_reads(sys.maxsize)

    def resume_writing(self) -> None:
        """As asyncio says: all of it went out."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def _look_whether_it_reads(self, left_before: int) -> None:
        """Hang up when nothing was taken of what is left; a slow reader takes some of it."""
        if self.transport is None:
            return
        left = self.transport.get_write_buffer_size()
        if left >= left_before:
            self.transport.abort()
            return
        self._unread = self._loop.call_later(
            self._reading_patience, self._look_whether_it_reads, left
        )

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = InternalError.status,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it quotes the request
    ) -> web.StreamResponse:
        """The documented answer to what no handler answered; the connection ends with it."""
        is_theirs = status == MalformedRequest.status
        if exc is not None and not is_theirs:
            self.log_exception(exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer had begun already")
        return _last_answer(MalformedRequest() if is_theirs else InternalError())

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """As the library, but for its own answer to an `Expect` that it does not know."""
        if isinstance(resp, web.HTTPExpectationFailed):
            resp = _last_answer(MalformedRequest())
        return await super().finish_response(request, resp, start_time)

    def log_exception(self, *_words: Any, **details: Any) -> None:
        """Note an accident without its text; a body that broke off is none of ours."""
        error = details.get("exc_info")
        if isinstance(error, BaseException) and not isinstance(error, web.RequestPayloadError):
            log_exception("a connection", error)

    def _leave_unless_asked(self) -> None:
        if self._request_count == 0:
            self.force_close()


def _last_answer(refusal: InternalError | MalformedRequest) -> web.Response:
    response = refuse(refusal)
    set_headers(response)
    response.force_close()
    return response
