"""The live feed as server-sent events, for terminals (docs/guide/door-protocol.md) and pages.

After an interruption, a terminal can resume the feed from the last `id:` that it received.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from aiohttp import web

from appliance.core.errors import Unavailable
from appliance.door.live_feed import Change, Listener
from appliance.door.terminals import Terminal, get_terminal
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT
from terminal_bridge.api.evening import guest_of, totals_of
from terminal_bridge.api.offline_scans import conflict_of
from terminal_bridge.api.protocol import authenticate, encode, first_check_in_of

HEARTBEAT_SECONDS = 20.0
_BATCH = 8  # changes serialised before yielding to the event loop
_SEND_SECONDS = 30.0  # a listener that reads nothing for this long is disconnected


class Channel(ABC):
    """The events that one listener of a stream wants, and how they are sent.

    `after` is the last position that the listener knows, or None.
    """

    def __init__(self, environment: Environment, owner: str, after: str | None) -> None:
        self.environment = environment
        self.owner, self.after = owner, after

    @abstractmethod
    def wants(self, change: Change) -> bool:
        """Return whether the listener wants the change."""

    @abstractmethod
    def authorise(self, listener: Listener, changes: list[Change]) -> list[Change]:
        """Return the changes that the listener may still receive.

        End the listener if it may receive no more. Called for each batch, because the listener's
        rights may have changed in the meantime.
        """

    @abstractmethod
    def describe(self, change: Change) -> tuple[str, dict[str, Any]]:
        """Return a change as (event, data)."""


class FeedStream(web.StreamResponse):
    """A response that streams the live feed after the middlewares have set the common headers.

    `channels` are its listeners by name. A terminal's stream has one, a browser's one a page.
    """

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        self.content_type = "text/event-stream"
        self.charset = "utf-8"
        self._channels = channels

    async def write_eof(self, data: bytes = b"") -> None:
        """Stream until the client leaves, every channel has ended, or the box stops."""
        following = [asyncio.ensure_future(self._follow(name)) for name in self._channels]
        try:
            with suppress(TimeoutError):  # the client does not read
                await asyncio.gather(*following)
        finally:
            for each in following:
                each.cancel()
            await asyncio.gather(*following, return_exceptions=True)
        await super().write_eof(data)

    def event(self, _name: str, kind: str, position: str, data: dict[str, Any]) -> str:
        """Return an event of the channel `name`."""
        return f"event: {kind}\nid: {position}\ndata: {encode(data)}\n\n"

    def heartbeat(self, _name: str, position: str) -> str:
        """Return the message sent while nothing happens.

        `position` is the one after the changes that were not sent to this channel.
        """
        return f": still here\nid: {position}\n\n"

    def farewell(self, _name: str) -> str:
        """Return the last message of a channel. Other channels of the stream may continue."""
        return ""

    async def _follow(self, name: str) -> None:
        channel = self._channels[name]
        with suppress(Unavailable):  # the box is stopping
            feed = channel.environment.feed
            listener = await feed.listen(channel.owner, channel.after, channel.wants)
            try:
                while await self._send_changes(name, listener):
                    pass
            finally:
                feed.leave(listener)

    async def _send_changes(self, name: str, listener: Listener) -> bool:
        """Wait for changes and send them. Return whether to continue."""
        channel = self._channels[name]
        changes = channel.authorise(listener, await listener.take(HEARTBEAT_SECONDS))
        is_over = listener.over.done()
        events = []
        for number, change in enumerate(changes, 1):
            kind, data = channel.describe(change)
            events.append(self.event(name, kind, change.position, data))
            if number % _BATCH == 0:  # yield to the event loop, because scans may be waiting
                await asyncio.sleep(0)
        if not changes and not is_over:
            events.append(self.heartbeat(name, listener.position))
        if is_over:
            events.append(self.farewell(name))
        chunk = "".join(events).encode()
        if chunk:
            await self._send(chunk, listener)
        return not is_over

    async def _send(self, chunk: bytes, listener: Listener) -> None:
        """Write a chunk. Raises TimeoutError if the client does not read it in time."""
        writing = asyncio.ensure_future(self.write(chunk))
        is_over = listener.over.done()
        await asyncio.wait(
            {writing} if is_over else {writing, listener.over},
            timeout=0.5 if is_over else _SEND_SECONDS,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not writing.done():
            writing.cancel()
            raise TimeoutError
        writing.result()


async def events(request: web.Request) -> web.StreamResponse:
    """`GET /events`: stream check-ins and changes to tonight's list as they are committed.

    If the stream cannot be resumed without loss, it begins with `reset`, and the terminal must
    reload the evening.
    """
    terminal = await authenticate(request)
    if request.method == "HEAD":
        return web.Response(content_type="text/event-stream")
    after = request.headers.get("Last-Event-ID") or request.query.get("after")
    return FeedStream({"": DoorChannel(request[ENVIRONMENT], terminal, after)})


class DoorChannel(Channel):
    """The events that a terminal receives: tonight's list, and conflicts."""

    def __init__(self, environment: Environment, terminal: Terminal, after: str | None) -> None:
        super().__init__(environment, terminal.id, after)
        self._terminal = terminal

    def wants(self, change: Change) -> bool:
        """Return whether a change concerns tonight's list.

        This includes conflicts from earlier evenings, because a terminal may sync its offline scans
        as late as the next morning.
        """
        found = change.reservation
        if found is None or change.conflict is not None:
            return True
        return found.date == change.evening

    def authorise(self, listener: Listener, changes: list[Change]) -> list[Change]:
        """Tell a revoked terminal so, and end it. Drop a terminal whose role has changed."""
        # A command in another process may have changed this terminal, so read it again.
        if any(change.kind in {"reset", "totals"} for change in changes):
            terminal = self.environment.database.peek(get_terminal, self._terminal.id)
            if terminal.role != self._terminal.role:
                listener.drop()
                return []
            if terminal.revoked_at is not None:
                listener.end()
                return [*changes, Change(listener.position, "revoked")]
        return changes

    def describe(self, change: Change) -> tuple[str, dict[str, Any]]:
        """Return a change as in docs/guide/door-protocol.md."""
        return change.kind, event_of(change, self._terminal)


def event_of(change: Change, terminal: Terminal) -> dict[str, Any]:
    """Return a feed event's data. Only terminals with the role `search` receive notes."""
    data: dict[str, Any] = {}
    if change.totals is not None:
        data |= {"evening": change.evening, "totals": totals_of(change.totals)}
    if change.reservation is not None:
        data["reservation"] = guest_of(change.reservation, terminal, change.late_from)
        if not terminal.may("search"):
            data["reservation"]["notes"] = None
    if change.door is not None:
        data["admitted"] = change.door.verdict.admitted
        data["moved"] = change.door.verdict.moved
        data["terminalId"] = change.door.terminal_id
        if change.kind == "check-in":
            data["scanId"] = change.door.scan_id
        data["firstCheckIn"] = first_check_in_of(change.door.verdict.first_check_in)
    if change.conflict is not None:
        data["conflict"] = conflict_of(change.conflict, terminal)
    return data
