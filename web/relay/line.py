"""The box's line to its relay: an outgoing SSH connection that carries the callers.

The relay's sshd opens a channel for each caller. A channel begins with a PROXY header, which names
the caller (HAProxy's doc/proxy-protocol.txt, section 2.2). What follows is TLS, which ends in the
box.
"""

import asyncio
import math
import socket
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast

import asyncssh

from appliance.core.errors import OperatorError, log_exception
from appliance.core.ssh import connect, key_file
from appliance.http.request import BY_RELAY, Networks, address_of, is_in
from appliance.relay import Relay
from web.connection import READ_AT_ONCE

_LISTEN_HOST = "127.0.0.1"  # the relay's loopback address, to which HAProxy connects
_CONNECT_SECONDS = 10.0
_KEEPALIVE_SECONDS, _KEEPALIVE_MISSES = 4, 1
_UNACKNOWLEDGED_MS = 8000  # if sent data is not acknowledged for this long, the connection ends
_WINDOW = 128 * 1024
_CHANNELS_MAX = 500
_HEADER_SECONDS = 10.0
# The PROXY protocol, version 2.
_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_FIXED = 16  # bytes: the signature, version and command, family, and the length of the rest
_PROXIED = 0x21  # version 2, command PROXY
_ADDRESS_BYTES = {0x11: 4, 0x21: 16}  # by family: TCP over IPv4, and over IPv6
_LONGEST = 1024  # addresses, ports and additional fields
# Each TLS handshake computes a signature. Without a pause between them, a relay that opens hundreds
# of connections at once would delay scans at the door.
_CALLERS_PER_SECOND, _CALLERS_AT_ONCE, _CALLER_WAITS_SECONDS = 50.0, 10, 5.0

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class Refused(Exception):
    """Raised if the relay refuses this box, or if it is not the relay that the box has joined.

    `reason` is the name of the observation to store.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


RELAY_REVOKED = "relay_revoked"
RELAY_OTHER_KEY = "relay_other_key"
RELAY_TAKEN = "relay_taken"


async def open_line(
    relay: Relay, root: Path, protocol: ProtocolFactory, may_accept: Callable[[str], bool]
) -> asyncssh.SSHClientConnection:
    """Connect to the relay, and let it pass on the connections for the box's name.

    `protocol` creates the protocol for each caller's connection. `may_accept` receives the caller's
    address and returns whether to accept the connection. The caller of this function must close
    what it returns. Raises Refused, OSError, asyncssh.Error or TimeoutError if the line cannot be
    opened, and OperatorError if the box's key is damaged.
    """

    def is_trusted(key: asyncssh.SSHKey) -> bool:
        return bool(key.get_fingerprint() == relay.fingerprint)

    connection: asyncssh.SSHClientConnection | None = None
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            connection = await connect(
                relay.host, relay.port, relay.user, is_trusted,
                client_keys=[str(key_file(root))], server_host_key_algs=["ssh-ed25519"],
                keepalive_interval=_KEEPALIVE_SECONDS, keepalive_count_max=_KEEPALIVE_MISSES,
            )  # fmt: skip
            kernel = connection.get_extra_info("socket")
            kernel.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)
            await connection.create_server(
                _Callers(protocol, may_accept).accept, _LISTEN_HOST, relay.listen_port,
                window=_WINDOW, max_pktsize=READ_AT_ONCE,
            )  # fmt: skip
    except BaseException as error:
        if connection is not None:
            connection.abort()
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            raise Refused(RELAY_OTHER_KEY) from None
        if isinstance(error, asyncssh.PermissionDenied):
            raise Refused(RELAY_REVOKED) from None
        if isinstance(error, asyncssh.ChannelListenError):
            raise Refused(RELAY_TAKEN) from None
        if isinstance(error, asyncssh.KeyImportError):
            raise OperatorError(
                f"{key_file(root)} is damaged. Delete it, and join the relay again with a new key."
            ) from None
        raise
    return connection


def is_believable(caller: str, trusted_proxies: Networks) -> bool:
    """Return whether to accept a connection from `caller`, the address that the relay reports.

    Rejects loopback addresses and trusted proxies, because the box gives them more rights than a
    caller from outside may have. Also rejects addresses that no caller can have.
    """
    address = address_of(caller)
    if address is None or is_in(caller, trusted_proxies):
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)


class _Callers:
    """The channels of one line. At most 50 a second are accepted, and 500 at a time."""

    def __init__(self, protocol: ProtocolFactory, may_accept: Callable[[str], bool]) -> None:
        self._protocol, self._may_accept = protocol, may_accept
        # The open channels, and closed channels that the relay has not yet confirmed as closed. The
        # library keeps both in memory.
        self._channels: set[_Session] = set()
        self._free_at = -math.inf

    # The library forgets a refused channel only if this function is asynchronous.
    async def accept(self, _host: str, _port: int) -> asyncssh.SSHTCPSession[bytes]:
        if len(self._channels) >= _CHANNELS_MAX:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, "too many callers")
        session = _Session(self._protocol, self._may_accept, self._channels.discard)
        self._channels.add(session)
        try:
            await self._wait_for_turn()
        except BaseException:
            self._channels.discard(session)
            raise
        return session

    async def _wait_for_turn(self) -> None:
        now = asyncio.get_running_loop().time()
        burst = _CALLERS_AT_ONCE / _CALLERS_PER_SECOND
        self._free_at = max(self._free_at, now - burst)
        wait = self._free_at - now
        if wait > _CALLER_WAITS_SECONDS:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, "too many callers")
        self._free_at += 1 / _CALLERS_PER_SECOND
        if wait > 0:
            await asyncio.sleep(wait)


class _Session(asyncssh.SSHTCPSession[bytes], asyncio.Transport):
    """Passes a channel's data to an asyncio protocol, and is that protocol's transport.

    The protocol is created when the PROXY header has arrived. `peername` is the caller in it. Calls
    `on_end` when the library has removed the channel.
    """

    def __init__(
        self,
        factory: ProtocolFactory,
        may_accept: Callable[[str], bool],
        on_end: Callable[["_Session"], None],
    ) -> None:
        self._info: dict[str, Any] = {BY_RELAY: True}
        asyncio.Transport.__init__(self, self._info)
        self._factory, self._may_accept, self._on_end = factory, may_accept, on_end
        self._protocol: asyncio.BaseProtocol | None = None
        self._head = b""
        self._timer: asyncio.TimerHandle
        self._channel: asyncssh.SSHTCPChannel[bytes]
        self._is_connected = False
        self.max_size = READ_AT_ONCE  # the same limit as for a socket

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        self._channel, self._is_connected = chan, True
        self._timer = asyncio.get_running_loop().call_later(_HEADER_SECONDS, self.abort)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:  # noqa: ARG002 - unused
        self._call(self._feed if self._protocol else self._begin, data)

    def _begin(self, data: bytes) -> None:
        """Read the PROXY header. Once it is complete, start the protocol."""
        self._head += data
        try:
            found = read_proxy_header(self._head)
        except BadHeader:
            self.abort()
            return
        if found is None:
            return
        self._timer.cancel()
        caller, length = found
        if not self._may_accept(caller[0]):
            self.abort()
            return
        self._info["peername"] = caller
        self._protocol = self._factory()
        self._protocol.connection_made(self)
        rest, self._head = self._head[length:], b""
        if rest:
            self._feed(rest)

    def _feed(self, data: bytes) -> None:
        if isinstance(self._protocol, asyncio.BufferedProtocol):
            while data and self._is_connected:
                buffer = memoryview(self._protocol.get_buffer(len(data)))
                count = min(len(buffer), len(data))
                buffer[:count] = data[:count]
                self._protocol.buffer_updated(count)
                data = data[count:]
        else:
            cast("asyncio.Protocol", self._protocol).data_received(data)

    def eof_received(self) -> bool:
        if self._protocol is None:
            return False
        return bool(self._call(cast("asyncio.Protocol", self._protocol).eof_received))

    def _call(self, method: Callable[..., Any], *args: Any) -> Any:
        """Call a method of the protocol. After an error, log it and close only this channel."""
        try:
            return method(*args)
        except Exception as error:  # noqa: BLE001 - the library would end the whole connection
            log_exception("relay: a caller's connection", error)
            self.abort()

    def pause_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end(self)
        self._end(exc)

    def _end(self, error: Exception | None) -> None:
        """Notify the protocol, once, that the connection is lost."""
        if self._is_connected:
            self._is_connected = False
            self._timer.cancel()
            if self._protocol is not None:
                self._protocol.connection_lost(error)

    def write(self, data: Any) -> None:
        if not self._channel.is_closing():
            self._channel.write(bytes(data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._channel.is_closing():
            self._channel.write_eof()

    def close(self) -> None:
        self._channel.close()

    def is_closing(self) -> bool:
        return not self._is_connected or self._channel.is_closing()

    def abort(self) -> None:
        self._force_close(None)

    def _force_close(self, exc: Exception | None) -> None:
        """Close immediately, without waiting for the relay. asyncio's TLS protocol calls this."""
        self._channel.abort()
        asyncio.get_running_loop().call_soon(self._end, exc)

    def pause_reading(self) -> None:
        self._channel.pause_reading()

    def resume_reading(self) -> None:
        self._channel.resume_reading()

    def get_write_buffer_size(self) -> int:
        return int(self._channel.get_write_buffer_size())

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._channel.set_write_buffer_limits(high, low)


class BadHeader(ValueError):
    """Raised if the data does not begin with such a header of a TCP connection."""


def read_proxy_header(data: bytes) -> tuple[tuple[str, int], int] | None:
    """Return the caller's (address, port) and the length of the header at the start of `data`.

    Returns None if the header is incomplete. Raises BadHeader if it is not a valid one.
    """
    if not data.startswith(_SIGNATURE[: len(data)]):
        raise BadHeader
    if len(data) < _FIXED:
        return None
    command, family = data[12], data[13]
    size, rest = _ADDRESS_BYTES.get(family, 0), int.from_bytes(data[14:_FIXED])
    if command != _PROXIED or not size or not 2 * size + 4 <= rest <= _LONGEST:
        raise BadHeader
    if len(data) < _FIXED + rest:
        return None
    address = ip_address(data[_FIXED : _FIXED + size])
    ports = _FIXED + 2 * size
    port = int.from_bytes(data[ports : ports + 2])
    return (str(getattr(address, "ipv4_mapped", None) or address), port), _FIXED + rest
