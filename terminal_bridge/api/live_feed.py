"""The live feed as server-sent events, for terminals (docs/guide/door-protocol.md) and pages.

After an interruption, a terminal can resume the feed from the last `id:` that it received.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from aiohttp import web

from appliance.core.errors import Unavailable
from appliance.door.live_feed import Change, Listener
from appliance.door.terminals import Terminal, get_terminal
from appliance.http.request import ENVIRONMENT
from terminal_bridge.api.evening import guest_of
from terminal_bridge.api.offline_scans import conflict_of
from terminal_bridge.api.protocol import authenticate, encode, first_check_in_of

HEARTBEAT_SECONDS = 20.0
_BATCH = 8  # changes serialised before yielding to the event loop
_SEND_SECONDS = 30.0  # a listener that reads nothing for this long is disconnected


class FeedStream(web.StreamResponse):
    """A response that streams the live feed after the middlewares have set the common headers.

    A listener may resume the stream from its last id. It sends the id in `Last-Event-ID`, or in
    `?after=` if it is a page that cannot set the header.
    """

    def __init__(self, request: web.Request, owner: str, wants: Callable[[Change], bool]) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        self.content_type = "text/event-stream"
        self.charset = "utf-8"
        self._feed = request[ENVIRONMENT].feed
        self._owner, self._wants = owner, wants
        self._after = request.headers.get("Last-Event-ID") or request.query.get("after")

    @abstractmethod
    def authorise(self, listener: Listener, changes: list[Change]) -> list[Change]:
        """Return the changes that the listener may still receive.

        End the listener if it may receive no more. Called for each batch, because the listener's
        rights may have changed in the meantime.
        """

    @abstractmethod
    def describe(self, change: Change) -> tuple[str, dict[str, Any]]:
        """Return a change as (event, data)."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Stream until the listener leaves or is ended, or the box stops."""
        with suppress(Unavailable):  # the box is stopping
            listener = await self._feed.listen(self._owner, self._after, self._wants)
            try:
                while await self._send_changes(listener):
                    pass
            finally:
                self._feed.leave(listener)
        await super().write_eof(data)

    async def _send_changes(self, listener: Listener) -> bool:
        """Wait for changes and send them. Return whether to continue."""
        changes = self.authorise(listener, await listener.take(HEARTBEAT_SECONDS))
        is_over = listener.over.done()
        events = []
        for number, change in enumerate(changes, 1):
            kind, data = self.describe(change)
            events.append(f"event: {kind}\nid: {change.position}\ndata: {encode(data)}\n\n")
            if number % _BATCH == 0:  # yield to the event loop, because scans may be waiting
                await asyncio.sleep(0)
        # The heartbeat's id is the position after the changes that were not sent to this listener.
        if not changes and not is_over:
            events.append(f": still here\nid: {listener.position}\n\n")
        if events and not await self._send("".join(events).encode(), listener):
            return False
        return not is_over

    async def _send(self, chunk: bytes, listener: Listener) -> bool:
        """Write a chunk. Return False if the listener does not read it in time."""
        writing = asyncio.ensure_future(self.write(chunk))
        is_over = listener.over.done()
        await asyncio.wait(
            {writing} if is_over else {writing, listener.over},
            timeout=0.5 if is_over else _SEND_SECONDS,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not writing.done():
            writing.cancel()
            return False
        writing.result()
        return True


async def events(request: web.Request) -> web.StreamResponse:
    """`GET /events`: stream check-ins and changes to tonight's list as they are committed.

    If the stream cannot be resumed without loss, it begins with `reset`, and the terminal must
    reload the evening.
    """
    terminal = await authenticate(request)
    if request.method == "HEAD":
        return web.Response(content_type="text/event-stream")
    return _DoorStream(request, terminal)


class _DoorStream(FeedStream):
    def __init__(self, request: web.Request, terminal: Terminal) -> None:
        super().__init__(request, terminal.id, _concerns_tonight)
        self._database, self._terminal = request[ENVIRONMENT].database, terminal

    def authorise(self, listener: Listener, changes: list[Change]) -> list[Change]:
        # A command in another process may have changed this terminal, so read it again.
        if any(change.kind in {"reset", "totals"} for change in changes):
            terminal = self._database.peek(get_terminal, self._terminal.id)
            if terminal.role != self._terminal.role:
                listener.drop()
                return []
            if terminal.revoked_at is not None:
                listener.end()
                return [*changes, Change(listener.position, "revoked")]
        return changes

    def describe(self, change: Change) -> tuple[str, dict[str, Any]]:
        return change.kind, event_of(change, self._terminal)


def _concerns_tonight(change: Change) -> bool:
    """Return whether a change concerns tonight's list.

    This includes conflicts from earlier evenings, because a terminal may sync its offline scans as
    late as the next morning.
    """
    found = change.reservation
    if found is None or change.conflict is not None:
        return True
    return found.date == change.evening


def event_of(change: Change, terminal: Terminal) -> dict[str, Any]:
    """Return a feed event's data. Only terminals with the role `search` receive notes."""
    data: dict[str, Any] = {}
    if change.totals is not None:
        data |= {"evening": change.evening, "totals": asdict(change.totals)}
    if change.reservation is not None:
        data["reservation"] = guest_of(change.reservation)
        if not terminal.may("search"):
            data["reservation"]["notes"] = None
    if change.door is not None:
        data["admitted"] = change.door.verdict.admitted
        data["terminalId"] = change.door.terminal_id
        if change.kind == "check-in":
            data["scanId"] = change.door.scan_id
        data["firstCheckIn"] = first_check_in_of(change.door.verdict.first_check_in)
    if change.conflict is not None:
        data["conflict"] = conflict_of(change.conflict, terminal)
    return data
