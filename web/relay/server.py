"""The relay's SSH server: boxes connect and ask it to forward the connections for their names."""

import asyncio
import logging
import socket
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

import asyncssh

from appliance.clock import Clock
from appliance.core.errors import RateLimited
from appliance.http.rate_limit import RateLimit
from appliance.http.request import caller_key
from appliance.relay_access import BOX_USER
from web.connection import READ_AT_ONCE
from web.relay.enrolment import (
    HTTP_PORT,
    JOIN_USER,
    TLS_PORT,
    EnrolledBox,
    Enrolments,
)

log = logging.getLogger(__name__)

REPLACED, REVOKED = asyncssh.DISC_TOO_MANY_CONNECTIONS, asyncssh.DISC_BY_APPLICATION
"""Reasons for closing a box's connection: a newer connection of the box replaced it, or the box was
revoked."""
SSH_OPTIONS = {
    "config": [],
    "x509_trusted_cert_paths": [],  # the default looks into the home, which systemd may have closed
    "gss_host": None,  # the default looks up this machine's name in each login, in vain for 10 s
    # Other algorithms, such as 8192-bit Diffie-Hellman, could block the event loop for too long.
    "kex_algs": ["mlkem768x25519-sha256", "curve25519-sha256"],
    "encryption_algs": ["aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"],
    "compression_algs": None,  # the forwarded data is already encrypted
}
_LOGIN_SECONDS = 10
_KEEPALIVE_SECONDS, _KEEPALIVE_MISSES = 10, 2
_WATCH_SECONDS = 1.0
_ASK_SECONDS = 15.0  # for a box to ask for its connections; the box itself gives up after 10 s
# The relay disconnects a box if the unsent bytes queued for it exceed this number times the box's
# connection limit. A box's window for one channel is 128 KiB.
_UNSENT_PER_CONNECTION = 320 * 1024
# The window is small, because data queued on a box's slow line would delay its later responses.
_WINDOW, _PACKET = 64 * 1024, 32 * 1024
_DIALS_PER_MINUTE = 120  # from one address, which may be that of many boxes behind carrier NAT


@dataclass(slots=True)
class Limits:
    """What one box may use: concurrent connections, bytes a second, and bytes of backups."""

    connections: int = 200
    bytes_per_second: int = 4 * 1024 * 1024
    backup_bytes: int = 2_000_000_000


Direction = Literal["bytes_in", "bytes_out"]


@dataclass(slots=True)
class Traffic:
    """Counters for one host name since the relay started."""

    open: int = 0
    connections: int = 0
    refused: int = 0
    bytes_in: int = 0  # from the public side to the box
    bytes_out: int = 0
    dials: int = 0
    connected_at: int | None = None  # ms since 1970
    _free_at: float = field(default=0.0, repr=False)

    async def spend(self, direction: Direction, count: int, rate: int) -> None:
        """Count `count` more bytes, and wait as needed to stay below `rate` bytes per second."""
        setattr(self, direction, getattr(self, direction) + count)
        now = asyncio.get_running_loop().time()
        # After an idle period, up to one second's worth of bytes passes without a wait.
        self._free_at = max(self._free_at, now - 1.0) + count / rate
        if self._free_at > now:
            await asyncio.sleep(self._free_at - now)


class Boxes:
    """The enrolled boxes, and the SSH connections of those that are connected."""

    def __init__(self, enrolments: Enrolments, clock: Clock, limits: Limits) -> None:
        self.limits = limits
        self.enrolments = enrolments
        self.clock = clock
        self.traffic: dict[str, Traffic] = {}
        self.storage: dict[str, Traffic] = defaultdict(Traffic)  # backup and release files
        self._connected: dict[str, asyncssh.SSHServerConnection] = {}
        self._enrolled: dict[str, EnrolledBox] = {}
        self.dials = RateLimit(clock, _DIALS_PER_MINUTE)
        self.reload()

    @property
    def names(self) -> list[str]:
        """The enrolled names."""
        return sorted(self._enrolled)

    def reload(self) -> None:
        """Read the enrolled boxes again. Disconnect those that are revoked or have a new key."""
        before, self._enrolled = self._enrolled, self.enrolments.boxes()
        for name, box in before.items():
            if self._enrolled.get(name) != box:
                self._cut(name, REVOKED)
        for name in self.traffic.keys() - self._enrolled.keys():
            del self.traffic[name]
        for name in self._enrolled:
            self.traffic.setdefault(name, Traffic())

    def find_by_key(self, key: str) -> str | None:
        """Return the name of the box with this public key, or None."""
        return next((box.name for box in self._enrolled.values() if box.key == key), None)

    def is_enrolled(self, name: str) -> bool:
        """Whether a box is enrolled under this name, even if it is not connected."""
        return name in self._enrolled

    def connection(self, name: str) -> asyncssh.SSHServerConnection | None:
        """Return the connection of the box with this name, or None if it is not connected."""
        return self._connected.get(name)

    def enter(self, name: str, connection: asyncssh.SSHServerConnection) -> None:
        """Use `connection` to reach the box `name` from now on. Close its older connection."""
        if self._connected.get(name) is connection:
            return
        self._cut(name, REPLACED)
        self._connected[name] = connection
        traffic = self.traffic[name]
        traffic.dials += 1
        traffic.connected_at = self.clock.now()
        log.info("relay: %s is connected", name)

    def leave(self, name: str, connection: asyncssh.SSHServerConnection) -> None:
        """Remove a connection that has ended."""
        if self._connected.get(name) is connection:
            del self._connected[name]
            if name in self.traffic:
                self.traffic[name].connected_at = None
            log.warning("relay: %s is disconnected", name)

    def close(self) -> None:
        """End every connection."""
        for connection in list(self._connected.values()):
            connection.abort()

    def _cut(self, name: str, reason: int) -> None:
        connection = self._connected.pop(name, None)
        if connection is not None:
            connection.disconnect(reason, "replaced" if reason == REPLACED else "revoked")


FilesFactory = Callable[[Boxes, "asyncssh.SSHServerChannel[bytes]"], asyncssh.SFTPServer]


class BoxConnection(asyncssh.SSHServer):
    """One SSH connection to the relay.

    Over it, a box can only have the connections for its own host name forwarded, store and read its
    own backups, and read releases.
    """

    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes
        self._connection: asyncssh.SSHServerConnection | None = None
        self._key = ""
        self._secret = ""
        self._name: str | None = None
        self._began = asyncio.get_running_loop().time()
        self._timer: asyncio.TimerHandle

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Count the connection. Close it if its address connects too often."""
        self._connection = conn
        # Many small packets, read in one step, would block the event loop.
        cast("Any", conn)._transport.max_size = READ_AT_ONCE  # noqa: SLF001 - no other way
        self._watch()
        try:
            self._boxes.dials.spend(caller_key(str((conn.get_extra_info("peername") or ("",))[0])))
        except RateLimited:
            conn.abort()

    def auth_completed(self) -> None:
        """Store the box's name and key for the SFTP sessions of this connection."""
        if self._connection is not None and not self._secret:
            name = self._boxes.find_by_key(self._key) or ""
            self._connection.set_extra_info(box=(name, self._key))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the library's API
        """Remove the connection from the connected boxes."""
        self._timer.cancel()
        if self._name is not None and self._connection is not None:
            self._boxes.leave(self._name, self._connection)

    def _watch(self) -> None:
        """Close the connection if it is unused, or if the box reads too slowly."""
        loop, connection = asyncio.get_running_loop(), cast("Any", self._connection)
        is_used = self._name is not None or connection._channels  # noqa: SLF001 - no other way
        transport = connection._transport  # noqa: SLF001 - as above
        unsent = 0 if transport is None else transport.get_write_buffer_size()
        if unsent > self._boxes.limits.connections * _UNSENT_PER_CONNECTION or (
            not is_used and loop.time() - self._began >= _ASK_SECONDS
        ):
            connection.abort()
        else:
            self._timer = loop.call_later(_WATCH_SECONDS, self._watch)

    def public_key_auth_supported(self) -> bool:
        """Allow authentication with public keys, which is the only method."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Return whether this key is enrolled, or the user name contains a valid invitation.

        The library then checks that the client has the private key.
        """
        boxes = self._boxes
        self._key = " ".join(key.export_public_key().decode().split()[:2])  # without its comment
        if username.startswith(JOIN_USER):
            self._secret = username.removeprefix(JOIN_USER)
            return boxes.enrolments.find_invitation(self._secret, boxes.clock.now()) is not None
        self._secret = ""
        return username == BOX_USER and boxes.find_by_key(self._key) is not None

    def server_requested(self, listen_host: str, listen_port: int) -> asyncssh.SSHListener | bool:
        """Accept a box's request to forward the connections for its own host name.

        If the box joins with an invitation, this request enrols it.
        """
        boxes, connection = self._boxes, self._connection
        if connection is None or listen_port not in {TLS_PORT, HTTP_PORT}:
            return False
        if self._secret:
            pending = boxes.enrolments.find_invitation(self._secret, boxes.clock.now())
            if pending is None or pending.name != listen_host:
                return False
            boxes.enrolments.enrol(pending, self._key, boxes.clock.now())
            boxes.reload()
            log.info("relay: %s is enrolled", pending.name)
            return _Forward()
        name = boxes.find_by_key(self._key)
        if name is None or name != listen_host:
            log.warning(
                "relay: the box %s asked for the connections of %r, which is not its name",
                name,
                listen_host,
            )
            return False
        if listen_port == HTTP_PORT:  # the box requests this port last, so it is now ready
            self._name = name
            boxes.enter(name, connection)
        return _Forward()


class _Forward(asyncssh.SSHListener):
    """A reverse forward. It has no socket, because all names share the relay's public ports."""

    def close(self) -> None:
        """Do nothing: the forward ends with the connection."""

    async def wait_closed(self) -> None:
        """Return at once."""


async def listen_for_boxes(
    boxes: Boxes, listener: socket.socket, key: asyncssh.SSHKey, files: FilesFactory
) -> asyncssh.SSHAcceptor:
    """Start the SSH server with the host key `key`. `files` creates a session's SFTP server."""
    # Log messages below this level contain user names. A joining box's user name contains a secret.
    asyncssh.set_log_level(logging.ERROR)
    return await asyncssh.listen(
        sock=listener, server_factory=partial(BoxConnection, boxes), server_host_keys=[key],
        login_timeout=_LOGIN_SECONDS, keepalive_interval=_KEEPALIVE_SECONDS,
        keepalive_count_max=_KEEPALIVE_MISSES, allow_scp=False, agent_forwarding=False,
        allow_pty=False, sftp_factory=partial(files, boxes),
        **SSH_OPTIONS,
    )  # fmt: skip


async def open_channel(
    connection: asyncssh.SSHServerConnection, name: str, port: int, caller: tuple[str, int]
) -> tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]:
    """Open a channel to the box, and send it the address and port of `caller`.

    Raises asyncssh.Error if the box refuses. This coroutine has no timeout of its own. Do not
    cancel it: asyncssh would never close the channel.
    """
    return await connection.open_connection(
        name, port, *caller, encoding=None, window=_WINDOW, max_pktsize=_PACKET
    )
