"""The box's side of the SSH connection: join a relay, connect to it, and accept connections."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

import asyncssh

from appliance.core.errors import OperatorError, log_exception
from appliance.http.request import BY_RELAY, Networks, address_of, is_in
from appliance.relay_access import BOX_USER, Access, RelayAddress
from web.connection import READ_AT_ONCE
from web.relay.enrolment import (
    HTTP_PORT,
    JOIN_USER,
    TLS_PORT,
    Invitation,
)
from web.relay.server import REPLACED, SSH_OPTIONS

_DIAL_SECONDS = 10.0
_KEEPALIVE_SECONDS, _KEEPALIVE_MISSES = 4, 1
_UNACKNOWLEDGED_MS = 8000  # if sent data is not acknowledged for this long, the connection ends
_WINDOW = 128 * 1024
_CHANNELS_MAX = 500  # by default, the relay opens at most 400 channels to one box

RELAY_REVOKED = "relay_revoked"
RELAY_OTHER_KEY = "relay_other_key"
RELAY_REPLACED = "relay_replaced"

ProtocolFactory = Callable[[], asyncio.BaseProtocol]
_Accept = Callable[[str, int], Awaitable[asyncssh.SSHTCPSession[bytes]]]


class Refused(Exception):
    """Raised if the relay refuses this box, or is not the relay that the box joined.

    Another attempt within the next minute would fail too. `reason` is the name of the alert to
    raise.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def join(invitation: Invitation) -> Access:
    """Enrol this box at the relay with a new key.

    Raises Refused if the code was used or has expired, or if another machine answers. Raises
    OSError, asyncssh.Error or TimeoutError if the relay cannot be reached.
    """
    key = asyncssh.generate_private_key("ssh-ed25519")
    user = JOIN_USER + invitation.secret
    # The relay answers the forwarding request only after it has stored the key.
    dialled = await _connect(invitation.relay, user, key, invitation.name, {TLS_PORT: _refuse_all})
    dialled.close()
    return Access(invitation.relay, invitation.name, key.export_private_key().decode())


class Dialled(asyncssh.SSHClient):
    """A connection to the relay, over which the box receives the requests for its host name.

    `lost` is done when the connection has ended.
    """

    def __init__(self, relay: RelayAddress) -> None:
        self._relay = relay
        self._connection: asyncssh.SSHClientConnection
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        """Return whether `key` is the relay's host key."""
        del host, addr, port
        return self._relay.has_key(key)

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Store the connection."""
        self._connection = conn

    def connection_lost(self, exc: Exception | None) -> None:
        """Complete `lost`, because the connection has ended."""
        if not self.lost.done():
            self.lost.set_result(exc)

    async def wait_lost(self) -> None:
        """Wait until the connection is lost. Raises Refused if a newer connection replaced it."""
        error = await asyncio.shield(self.lost)
        if isinstance(error, asyncssh.DisconnectError) and error.code == REPLACED:
            raise Refused(RELAY_REPLACED)

    def close(self) -> None:
        """End the connection and every channel in it."""
        self._connection.abort()


async def dial(
    access: Access, tls: ProtocolFactory, plain: ProtocolFactory, may_accept: Callable[[str], bool]
) -> Dialled:
    """Connect to the relay, and ask it to forward the connections for the box's host name.

    `tls` and `plain` create the protocol for each connection. `may_accept` receives the caller's
    address and returns whether to accept the connection. Raises the same exceptions as `join`, and
    OperatorError if the key is damaged.
    """
    # The open channels, and closed channels that the relay has not yet confirmed as closed. The
    # library keeps both in memory.
    channels: set[_Session] = set()

    def accepting(factory: ProtocolFactory) -> _Accept:
        # The library forgets a refused channel only if this function is asynchronous.
        async def accept(caller: str, port: int) -> asyncssh.SSHTCPSession[bytes]:
            if len(channels) >= _CHANNELS_MAX or not may_accept(caller):
                return await _refuse_all(caller, port)
            session = _Session(factory(), (caller, port), channels.discard)
            channels.add(session)
            return session

        return accept

    try:
        key = asyncssh.import_private_key(access.key)
    except asyncssh.KeyImportError:
        raise OperatorError(
            "this box's key for the relay is damaged. Join the relay again with a new code."
        ) from None
    accepts = {TLS_PORT: accepting(tls), HTTP_PORT: accepting(plain)}
    return await _connect(access.relay, BOX_USER, key, access.name, accepts)


def is_believable(caller: str, trusted_proxies: Networks) -> bool:
    """Return whether to accept a connection from `caller`, the address that the relay reports.

    Rejects loopback addresses and trusted proxies, because the box gives them more rights than a
    caller from outside may have. Also rejects addresses that no caller can have.
    """
    address = address_of(caller)
    if address is None or is_in(caller, trusted_proxies):
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)


async def _connect(
    relay: RelayAddress, user: str, key: asyncssh.SSHKey, name: str, accepts: dict[int, _Accept]
) -> Dialled:
    """Connect, and ask the relay to forward the ports in `accepts` of the host `name`."""
    connection: asyncssh.SSHClientConnection | None = None
    try:
        async with asyncio.timeout(_DIAL_SECONDS):
            connection, dialled = await asyncssh.create_connection(
                partial(Dialled, relay), relay.host, relay.port,
                username=user, client_keys=[key], agent_path=None, known_hosts=([], [], []),
                server_host_key_algs=["ssh-ed25519"], login_timeout=_DIAL_SECONDS,
                keepalive_interval=_KEEPALIVE_SECONDS, keepalive_count_max=_KEEPALIVE_MISSES,
                **cast("dict[str, Any]", SSH_OPTIONS),
            )  # fmt: skip
            # Many small packets, read in one step, would block the event loop.
            cast("Any", connection)._transport.max_size = READ_AT_ONCE  # noqa: SLF001 - no other way
            kernel = connection.get_extra_info("socket")
            kernel.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)
            for port, accept in accepts.items():
                await connection.create_server(
                    accept, name, port, window=_WINDOW, max_pktsize=READ_AT_ONCE
                )
    except BaseException as error:
        if connection is not None:
            connection.abort()
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            raise Refused(RELAY_OTHER_KEY) from None
        if isinstance(error, asyncssh.PermissionDenied | asyncssh.ChannelListenError):
            raise Refused(RELAY_REVOKED) from None
        raise
    return cast("Dialled", dialled)


async def _refuse_all(_caller: str, _port: int) -> asyncssh.SSHTCPSession[bytes]:
    raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "not accepted")


class _Session(asyncssh.SSHTCPSession[bytes], asyncio.Transport):
    """Passes a channel's data to an asyncio protocol, and is that protocol's transport.

    `peername` is the address that the relay reports. Calls `on_end` when the library has removed
    the channel.
    """

    def __init__(
        self,
        protocol: asyncio.BaseProtocol,
        caller: tuple[str, int],
        on_end: Callable[["_Session"], None],
    ) -> None:
        asyncio.Transport.__init__(self, {"peername": caller, BY_RELAY: True})
        self._protocol, self._on_end = protocol, on_end
        self._channel: asyncssh.SSHTCPChannel[bytes]
        self._is_connected = False
        self.max_size = READ_AT_ONCE  # the same limit as for a socket

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        self._channel, self._is_connected = chan, True
        self._call(self._protocol.connection_made, self)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:  # noqa: ARG002 - unused
        self._call(self._feed, data)

    def _feed(self, data: bytes) -> None:
        if isinstance(self._protocol, asyncio.BufferedProtocol):
            while data:
                buffer = memoryview(self._protocol.get_buffer(len(data)))
                count = min(len(buffer), len(data))
                buffer[:count] = data[:count]
                self._protocol.buffer_updated(count)
                data = data[count:]
        else:
            cast("asyncio.Protocol", self._protocol).data_received(data)

    def eof_received(self) -> bool:
        return bool(self._call(cast("asyncio.Protocol", self._protocol).eof_received))

    def _call(self, method: Callable[..., Any], *args: Any) -> Any:
        """Call a method of the protocol. After an error, log it and close only this channel."""
        try:
            return method(*args)
        except Exception as error:  # noqa: BLE001 - the library would end the whole connection
            log_exception("relay: a caller's connection", error)
            self.abort()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end(self)
        self._end(exc)

    def _end(self, error: Exception | None) -> None:
        """Tell the protocol, once, that the connection is lost."""
        if self._is_connected:
            self._is_connected = False
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
        """Close at once, without waiting for the relay. asyncio's TLS protocol calls this."""
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
