"""One attempt: the request goes to an address that was checked, and its outcome comes back."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from appliance.model.delivery import Outcome
from appliance.webhooks.addresses import IpAddress, Reach, reach_of
from appliance.webhooks.answer import MalformedAnswer
from appliance.webhooks.connection import Connection, ConnectionClosed
from appliance.webhooks.egress import Blocked, EgressGuard
from appliance.webhooks.outcomes import (
    CONN_TIMEOUT,
    CONNECT,
    DNS,
    DNS_TEMP,
    GUARD,
    TLS,
    WAIT,
    answered,
    failed,
)
from appliance.webhooks.receiver import Receiver
from appliance.webhooks.trust import AnotherCertificate, PinnedCertificate, Trust

# Opens a TCP connection to one of the addresses. Raises OSError.
Connect = Callable[[Sequence[IpAddress], int], Awaitable[socket.socket]]


@dataclass(frozen=True, slots=True)
class Budgets:
    """How long an attempt may take, in seconds: `total` is that of the interface, section 6.3.

    `connect` is for TCP alone: who does not take up in that time is not there.
    """

    total: float = 10.0
    connect: float = 4.0
    drain: float = 1.0
    idle: float = 4.0  # many servers close a quiet connection after five


_FAILURES = (OSError, TimeoutError, Blocked, ConnectionClosed, MalformedAnswer)


class Client:
    """Sends to one receiver, over connections that are kept while they are busy.

    Follows no redirect, asks no proxy, keeps no cookie and unpacks nothing.
    """

    def __init__(
        self,
        receiver: Receiver,
        guard: EgressGuard,
        connect: Connect,
        trust: Trust,
        budgets: Budgets,
    ) -> None:
        self.receiver = receiver
        self._guard = guard
        self._connect = connect
        self._trust = trust
        self._budgets = budgets
        self._loop = asyncio.get_running_loop()
        self._idle: list[Connection] = []
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False
        self.addresses: Sequence[IpAddress] | None = (
            None if receiver.address is None else [receiver.address]
        )

    @property
    def is_local(self) -> bool:
        """Whether the receiver is known to be in the house, or in this very process."""
        found = self.addresses
        return found is not None and all(reach_of(each) is not Reach.PUBLIC for each in found)

    async def reach(self) -> str | None:
        """Look the receiver up and connect to it: None, or the code of what prevented that.

        Sends nothing. Where a name is not answered for, its last addresses will do.
        """
        try:
            found = await self._guard.addresses(self.receiver)
        except _FAILURES as error:
            unanswered = failed(error, DNS).code
            if unanswered != DNS_TEMP or not self.addresses:
                return unanswered
            # Too late, once more, says nothing new; anything else does.
            code = await self._connects(self.addresses)
            return unanswered if code == CONN_TIMEOUT else code
        return await self._connects(found)

    async def _connects(self, addresses: Sequence[IpAddress]) -> str | None:
        self.addresses = addresses
        try:
            async with asyncio.timeout(self._budgets.connect):
                (await self._connect(addresses, self.receiver.port)).close()
        except _FAILURES as error:
            return failed(error, CONNECT).code
        return None

    async def post(self, request: bytes) -> Outcome:
        """Send `request` within the total budget; every failure is an outcome.

        Decided when the head of the answer is here: what follows it changes nothing.
        """
        call = _Call(self._loop.time())
        try:
            try:
                async with asyncio.timeout(self._budgets.total) as limit:
                    status = await self._send(request, call)
            except _FAILURES as error:
                call.drop()
                if limit.expired():
                    return Outcome(call.phase, "timeout", remote_address=call.remote_address)
                return failed(error, call.phase, call.remote_address)
            return await self._finish(status, call)
        except BaseException:
            call.drop()
            raise

    def close(self) -> None:
        """Drop the idle connections; those in use are dropped after their answer."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _send(self, request: bytes, call: "_Call") -> int:
        call.connection = self._take_idle()
        if call.connection is not None:
            call.phase = WAIT
            try:
                return await call.connection.exchange(request)
            except ConnectionClosed:
                if call.connection.heard:
                    raise
                # Closed by the receiver while it was idle: that is no answer. Once more.
        call.connection = await self._dial(call)
        call.phase = WAIT
        return await call.connection.exchange(request)

    async def _dial(self, call: "_Call") -> Connection:
        receiver = self.receiver
        call.phase = DNS if receiver.address is None else GUARD
        addresses = await self._guard.addresses(receiver)
        self.addresses, call.phase = addresses, CONNECT
        context = await self._trust() if receiver.secure else None
        async with asyncio.timeout(self._budgets.connect):
            sock = await self._connect(addresses, receiver.port)
        if receiver.secure:  # slow or not: it is the receiver's own time, of which it has the rest
            call.phase = TLS
        _, connection = await self._loop.create_connection(
            Connection,
            sock=sock,
            ssl=context,
            server_hostname=receiver.host if receiver.secure else None,
        )
        if isinstance(self._trust, PinnedCertificate):
            self._check_pin(self._trust, connection)
        return connection

    @staticmethod
    def _check_pin(pinned: PinnedCertificate, connection: Connection) -> None:
        try:
            pinned.check(connection.certificate)
        except AnotherCertificate:
            connection.close()
            raise

    async def _finish(self, status: int, call: "_Call") -> Outcome:
        connection = call.connection
        assert connection is not None  # noqa: S101 - a status came from it
        remaining = call.started + self._budgets.total - self._loop.time()
        excerpt = await connection.finish(max(0.0, min(remaining, self._budgets.drain)))
        outcome = answered(status, excerpt, connection.remote_address, connection.date)
        if connection.reusable and not self._closed:
            self._park(connection)
        else:
            connection.close()
        return outcome

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.alive and self._is_fresh(connection):
                return connection
            connection.close()
        return None

    def _is_fresh(self, connection: Connection) -> bool:
        return self._loop.time() - connection.idle_since < self._budgets.idle

    def _park(self, connection: Connection) -> None:
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(self._budgets.idle, self._sweep_idle)

    def _sweep_idle(self) -> None:
        """Close what has been quiet too long. Runs only while there are idle connections."""
        self._sweep = None
        kept = [c for c in self._idle if c.alive and self._is_fresh(c)]
        for connection in self._idle:
            if connection not in kept:
                connection.close()
        self._idle = kept
        if kept:
            oldest = min(c.idle_since for c in kept)
            self._sweep = self._loop.call_at(oldest + self._budgets.idle, self._sweep_idle)


class _Call:
    """What one attempt has got to."""

    __slots__ = ("connection", "phase", "started")

    def __init__(self, started: float) -> None:
        self.phase = GUARD
        self.started = started
        self.connection: Connection | None = None

    @property
    def remote_address(self) -> str | None:
        return self.connection.remote_address if self.connection is not None else None

    def drop(self) -> None:
        if self.connection is not None:
            self.connection.close()
