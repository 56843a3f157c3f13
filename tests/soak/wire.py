"""A connection to a box with little overhead, because a million requests must not take an hour."""

import asyncio
import json
import re

LENGTH = re.compile(rb"\r\nContent-Length: (\d+)", re.IGNORECASE)


class Wire(asyncio.Protocol):
    """Sends one request after another, and reconnects if the box has closed the connection."""

    def __init__(self, address, token="", *, cookie=""):
        host, _, port = address.removeprefix("http://").partition(":")
        self._place = host, int(port)
        head = [f"Host: {host}:{port}"]
        head += [f"Authorization: Bearer {token}"] if token else []
        head += [f"Cookie: {cookie}"] if cookie else []
        self._head = "\r\n".join(head)
        self._transport = None
        self._received = b""
        self._answer = None

    async def ask(self, method, path, body=None, *more):
        """Return (status, body as bytes). Raises ConnectionError if there is no answer."""
        if self._transport is None:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: self, *self._place)
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", self._head, *more]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
        return await self._answer

    def close(self):
        """Close the connection."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport):
        self._transport = transport
        self._received = b""

    def data_received(self, data):
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        length = LENGTH.search(head)
        if length is None:
            if head[9:12] not in {b"204", b"304"}:  # chunked; the rest is not needed
                head += b"\r\nConnection: close"
        elif len(rest) < int(length[1]):
            return
        self._received = b""
        if not self._answer.done():
            self._answer.set_result((int(head[9:12]), rest))
        if b"\r\nConnection: close" in head:
            self._transport.abort()
            self._transport = None

    def connection_lost(self, _exc):
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("hung up before the answer"))
