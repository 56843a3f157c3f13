"""Listening sockets: http, and TLS on a second port."""

import asyncio
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from appliance.box import Box
from appliance.clock import DAY_MS
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.network import in_url, own_addresses, serves_tls
from appliance.database.connection import Reader
from appliance.database.database import ChangedBeside, Database
from appliance.door.terminals import list_terminals
from appliance.outbox import VenueChanged
from appliance.scheduler import Job
from appliance.tls.authority import wanted_names
from appliance.tls.certificates import Certificates
from appliance.venue.model import Venue, get_venue
from web.connection import READ_AT_ONCE, ConnectionLimit


@dataclass(slots=True)
class Listening:
    """The box's listening sockets. `tls` is None if the box does not serve TLS."""

    host: str
    plain: socket.socket
    tls: socket.socket | None = None

    @property
    def port(self) -> int:
        """Return the plain http port. If port 0 was requested, this is the assigned port."""
        return int(self.plain.getsockname()[1])

    @contextmanager
    def bind_tls(self, tls_port: int) -> Iterator[None]:
        """During the block, bind the TLS port. Raises OperatorError if the port is in use."""
        if not serves_tls(self.host, tls_port):
            yield
            return
        address = self.plain.getsockname()[0]
        with listen(address, tls_port, "server.tls_port") as self.tls:
            yield


def listen(host: str, port: int, option: str = "--host and --port") -> socket.socket:
    """Return a bound socket that is not yet listening. Raises OperatorError if binding fails."""
    try:
        kind, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(kind, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        sentence = (
            f"cannot listen on {in_url(host)}:{port} ({error.strerror}). "
            f"Choose another address with {option}."
        )
        if isinstance(error, PermissionError):
            sentence += (
                f" Only root may use ports below {_FIRST_FREE_PORT}. Let the router forward port "
                "443 to port 8443."
            )
        raise OperatorError(sentence) from None
    listener.setblocking(False)  # noqa: FBT003 - the library's API
    return listener


_FIRST_FREE_PORT = 1024
HANDSHAKE_SECONDS = 10
# The length of the accept queue, and how many connections asyncio accepts before it handles other
# events. The second number is small, because each TLS handshake computes a signature, and a
# thousand handshakes in a row would delay scans.
_BACKLOG, _ACCEPTED_AT_ONCE = 1024, 4


class CountedTls(SSLProtocol):
    """A connection over TLS. `limit` counts it before the handshake."""

    max_size = READ_AT_ONCE

    def __init__(
        self, inner: asyncio.Protocol, context: ssl.SSLContext, limit: ConnectionLimit
    ) -> None:
        super().__init__(
            asyncio.get_running_loop(),
            inner,
            context,
            None,  # type: ignore[arg-type] # nothing waits for the handshake
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
        )
        self._limit = limit
        self._counted: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection. Abort it if the limit is reached."""
        if self._limit.enter(transport):
            self._counted = transport
            super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop counting the connection."""
        if self._counted is not None:
            self._limit.leave(self._counted)
            self._counted = None
        super().connection_lost(cast("Exception | None", exc))


async def accept_tls(
    listener: socket.socket,
    inner: Callable[[], asyncio.Protocol],
    context: ssl.SSLContext,
    limit: ConnectionLimit,
) -> asyncio.Server:
    """Start serving TLS on `listener`. `inner` creates the protocol for each connection."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: cast("asyncio.Protocol", CountedTls(inner(), context, limit)),
        sock=listener,
        backlog=_ACCEPTED_AT_ONCE,
    )
    listener.listen(_BACKLOG)
    return server


def open_certificates(directory: DataDirectory, box: Box) -> Certificates:
    """Return the box's certificates. Creates any that are missing.

    Raises OperatorError if the files are damaged.
    """

    def venue() -> Venue:
        return box.live.database.peek(get_venue)

    found = Certificates(
        directory.root / "tls",
        box.clock,
        lambda: venue().name,
        lambda: wanted_names(venue().slug, box.settings.server, own_addresses()),
        lambda: any(each.database.peek(list_terminals) for each in box.environments),
    )
    found.prepare()
    return found


def renewal(certificates: Certificates, database: Database) -> Job:
    """Return the job that renews the certificate if needed.

    The job runs at startup, once a day, and whenever the venue changes, because the certificate
    contains the venue's slug.
    """
    checked_at: int | None = None

    def next_due(_reader: Reader) -> int:
        now = database.clock.now()
        return 0 if checked_at is None or checked_at > now else checked_at + DAY_MS

    async def renew() -> None:
        nonlocal checked_at
        certificates.renew()
        checked_at = database.clock.now()

    def check_again(_notices: Sequence[object]) -> None:
        nonlocal checked_at
        checked_at = None
        job.changed()

    job = Job("the certificate", database, next_due, renew, needs_clock=True)
    database.on_commit(check_again, VenueChanged, ChangedBeside)
    return job
