"""The way from the test environment's dispatcher to its echo receivers: a pair of sockets."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from appliance.webhooks.addresses import IpAddress

_HANG_UP_SECONDS = 0.1  # aiohttp takes 0 for as long as it likes

# Answers a request with the receiver's token, which ends its path, and its body.
Receive = Callable[[web.BaseRequest, str, bytes], Awaitable[web.StreamResponse]]


class InsideServer:
    """An HTTP server without a listener: it serves only the sockets that `connect` makes."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._server: web.Server | None = None

    async def connect(self, _addresses: Sequence[IpAddress], _port: int) -> socket.socket:
        """One end of a new pair, whose other end is served."""
        if self._server is None:
            self._server = web.Server(self._handle, access_log=None)
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)  # noqa: FBT003 - the library's own way to say it
        await asyncio.get_running_loop().connect_accepted_socket(self._server, theirs)
        return ours

    async def close(self) -> None:
        """Hang up whatever is still open."""
        if self._server is not None:
            await self._server.shutdown(_HANG_UP_SECONDS)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        token = request.path.rpartition("/")[2]
        return await self._receive(request, token, await request.read())
