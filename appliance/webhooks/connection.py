"""One HTTP/1.1 connection to a receiver: a request goes out, the head of an answer comes back.

The client of aiohttp does this too, at nearly three times the processor time, and without
telling whether a reused connection died before the first byte of an answer.
"""

import asyncio
from http import HTTPStatus
from typing import cast

from appliance.webhooks.answer import (
    BODY_MAX,
    HEAD_MAX,
    Head,
    MalformedAnswer,
    parse_head,
    read_chunks,
)

EXCERPT_MAX = 1024


class ConnectionClosed(Exception):
    """The receiver closed or reset the connection before the head of an answer."""


class Connection(asyncio.Protocol):
    """Carries one request at a time. Never holds more than 32 KiB of what a receiver says."""

    def __init__(self) -> None:
        self.heard = False
        self.idle_since = 0.0
        self.remote_address: str | None = None
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._expecting = False
        self._clean = True
        self._raw = bytearray()
        self._head: Head | None = None
        self._head_bytes = 0
        self._content = b""

    @property
    def alive(self) -> bool:
        """Whether a request can be tried on it."""
        return self._transport is not None and self._clean

    @property
    def reusable(self) -> bool:
        """Whether the last answer was read to its end, and another may follow."""
        keeps = self._head is not None and self._head.keeps_alive
        return self.alive and keeps and not self._expecting

    @property
    def certificate(self) -> bytes | None:
        """The certificate that the receiver showed, in DER; None without TLS."""
        found = self._transport and self._transport.get_extra_info("ssl_object")
        return found.getpeercert(binary_form=True) if found else None

    @property
    def date(self) -> str | None:
        """The Date header of the last answer."""
        return None if self._head is None else self._head.date

    async def exchange(self, request: bytes) -> int:
        """Send `request`; the status of the answer once its head is here.

        Raises ConnectionClosed or MalformedAnswer. `heard` tells whether any byte came.
        """
        if self._transport is None:
            raise ConnectionClosed
        self._raw.clear()
        self._head, self._head_bytes, self._content = None, 0, b""
        self._expecting, self.heard = True, False
        self._transport.write(request)
        await self._wait()
        head = self._answered()
        if head is None:
            raise ConnectionClosed
        return head.status

    async def finish(self, seconds: float) -> bytes:
        """Read the rest of the answer, at most 16 KiB of it for at most `seconds`.

        Returns its first KiB. Whatever is wrong with the body, it only costs the connection.
        """
        if self._is_unread():
            try:
                async with asyncio.timeout(seconds):
                    while self._is_unread():
                        await self._wait()
            except TimeoutError:
                self._clean = False
        return self._content[:EXCERPT_MAX]

    def close(self) -> None:
        """Drop the connection at once."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As asyncio says."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.remote_address = peer[0] if peer else None

    def data_received(self, data: bytes) -> None:
        """As asyncio says."""
        if not self._expecting:
            self.close()  # words that nobody asked for: the next answer would be wrong
            return
        if not self._clean:
            return
        self.heard = True
        self._raw += data
        try:
            if self._head is None:
                self._head = self._read_head()
            if self._head is not None:
                self._read_body(self._head)
                self._wake()
        except MalformedAnswer as malformed:
            self._clean = False
            self._wake(None if self._head is not None else malformed)

    def connection_lost(self, _exc: Exception | None) -> None:
        """As asyncio says."""
        self._transport = None
        self._wake()

    def _read_head(self) -> Head | None:
        while (end := self._raw.find(b"\r\n\r\n")) >= 0:
            self._head_bytes += end + 4
            if self._head_bytes > HEAD_MAX:
                break
            head = parse_head(bytes(self._raw[:end]))
            del self._raw[: end + 4]
            if head.status >= HTTPStatus.OK:
                return head
            if head.status == HTTPStatus.SWITCHING_PROTOCOLS:  # nobody asked for another protocol
                raise MalformedAnswer
        if self._head_bytes + len(self._raw) > HEAD_MAX:
            raise MalformedAnswer
        return None

    def _read_body(self, head: Head) -> None:
        size, end = len(self._raw), head.length
        if head.chunked:
            self._content, end = read_chunks(bytes(self._raw[:BODY_MAX]))
        else:
            self._content = bytes(self._raw[:EXCERPT_MAX])
        if end is not None and size >= end:
            self._expecting = False
            self._clean = size == end
        elif size > BODY_MAX:
            self._clean = False

    def _answered(self) -> Head | None:
        return self._head

    def _is_unread(self) -> bool:
        return self._expecting and self.alive

    async def _wait(self) -> None:
        self._waiting = self._loop.create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _wake(self, error: Exception | None = None) -> None:
        if self._waiting is None or self._waiting.done():
            return
        if error is None:
            self._waiting.set_result(None)
        else:
            self._waiting.set_exception(error)
