"""Keep the box connected to its relay, and record when guests cannot reach it.

The SSH library is imported only when the box has joined a relay, because it takes 5 MB.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.box import Box
from appliance.checks.check import (
    RELAY_AWAY,
    RELAY_UNUSABLE,
    list_observations,
    observe,
)
from appliance.core.errors import OperatorError, Unavailable, log_exception
from appliance.database.database import ChangedBeside
from appliance.http.request import networks_of
from appliance.relay import Relay

if TYPE_CHECKING:
    import asyncssh

log = logging.getLogger(__name__)

_NAMES = "relay_"  # prefix of the names of the observations here and in `line`
_NO_HTTPS = (
    "the box does not serve https. Set server.host to a network address of the box, and set "
    "server.tls_port."
)
_RETRY_SECONDS = (0.5, 3.0)
_RETRY_REFUSED_SECONDS = (60.0, 90.0)
_READ_AGAIN_SECONDS = (30.0, 60.0)
# Time offline before it is reported. Restarting the relay takes less, and so does the relay to
# notice that an earlier line is dead.
_QUIET_SECONDS = 30.0

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class RelayClient:
    """Keeps the box connected to the relay that it has joined, until `close` is called."""

    def __init__(self, box: Box, root: Path) -> None:
        """Create the client for the box whose data directory is `root`."""
        self._box, self._root = box, root
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_accepting = True
        self._lost_at = 0.0

    def start(self, tls: ProtocolFactory | None) -> None:
        """Start connecting. After `venuebox relay join` or `leave`, connect again or disconnect.

        `tls` creates the protocol for each connection from outside. It is None if the box does not
        serve https. The box then does not connect to the relay.
        """
        self._box.live.database.on_commit(self._on_command, ChangedBeside)
        self._task = asyncio.create_task(self._run(tls), name="relay")

    def stop_accepting(self) -> None:
        """Refuse new connections from outside. Existing connections continue."""
        self._is_accepting = False

    async def close(self) -> None:
        """Close the connection to the relay and all connections through it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _on_command(self, _notices: Sequence[object]) -> None:
        self._changed.set()

    async def _run(self, tls: ProtocolFactory | None) -> None:
        self._lost_at = self._box.clock.monotonic()
        while True:
            self._changed.clear()
            pause = _RETRY_SECONDS
            try:
                relay = Relay.load(self._root)
                if relay is None:
                    await self._put(None)
                    await self._changed.wait()
                    self._lost_at = self._box.clock.monotonic()
                elif tls is None:
                    raise OperatorError(_NO_HTTPS)  # noqa: TRY301 - becomes an observation below
                else:
                    pause = await self._connect(relay, tls)
            except OperatorError as error:
                await self._put(RELAY_UNUSABLE, str(error))
                pause = _READ_AGAIN_SECONDS
            except Exception as error:  # noqa: BLE001 - an error must not stop the client
                log_exception("relay: client", error)
                pause = _RETRY_REFUSED_SECONDS
            await self._pause(pause)

    async def _connect(self, relay: Relay, tls: ProtocolFactory) -> tuple[float, float]:
        """Connect, and wait until the connection is lost or the box joins another relay.

        Returns the shortest and the longest time to wait before the next attempt.
        """
        import asyncssh  # noqa: PLC0415 - see above

        from web.relay.line import (  # noqa: PLC0415 - see above
            RELAY_TAKEN,
            Refused,
            is_believable,
            open_line,
        )

        def may_accept(caller: str) -> bool:
            proxies = self._box.settings.server.trusted_proxies
            return self._is_accepting and is_believable(caller, networks_of(proxies))

        trouble = RELAY_AWAY
        try:
            line = await open_line(relay, self._root, tls, may_accept)
        except Refused as refusal:
            if refusal.reason != RELAY_TAKEN:
                await self._put(refusal.reason, relay.host)
                return _RETRY_REFUSED_SECONDS
            trouble = RELAY_TAKEN
        except (OSError, TimeoutError, asyncssh.Error) as error:
            log.debug("relay: connection failed: %s: %s", type(error).__name__, error)
        else:
            try:
                await self._put(None)
                log.info("relay: connected to %s as %s", relay.host, relay.name)
                self._box.relay_connected.set()
                await self._wait_for_end(line, relay)
            finally:
                self._box.relay_connected.clear()
                line.abort()
                self._lost_at = self._box.clock.monotonic()
        if self._box.clock.monotonic() - self._lost_at >= _QUIET_SECONDS:
            await self._put(trouble, relay.host)
        return _RETRY_SECONDS

    async def _wait_for_end(self, line: "asyncssh.SSHClientConnection", relay: Relay) -> None:
        """Wait until `line` is lost, or until the box has left `relay`."""
        lost = asyncio.create_task(line.wait_closed())
        lost.add_done_callback(lambda _lost: self._changed.set())
        try:
            while not lost.done() and relay == Relay.load(self._root):
                await self._changed.wait()
                self._changed.clear()
            if lost.done():
                log.warning("relay: the connection to %s was lost", relay.host)
        finally:
            lost.cancel()

    async def _pause(self, seconds: tuple[float, float]) -> None:
        """Wait for `_changed`, or for a random time so that boxes do not all connect together."""
        with suppress(TimeoutError):
            async with asyncio.timeout(random.uniform(*seconds)):  # noqa: S311 - not a secret
                await self._changed.wait()

    async def _put(self, name: str | None, detail: str = "") -> None:
        """Store the observation `name`, if any, and delete all others of the client."""
        database = self._box.live.database
        stored = {each.name: each for each in database.peek(list_observations, _NAMES)}
        with suppress(Unavailable):
            for each in stored.keys() - {name}:
                await database.write(observe, each, "")
            if name is not None and (name not in stored or stored[name].detail != detail):
                log.warning("relay: %s %s", name, detail)
                await database.write(observe, name, detail)
