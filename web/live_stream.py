"""`GET /live`: the one stream of a browser, which all its boards and door apps share.

A browser opens at most six connections to the box. One stream per page would use all of them, and
the next request, such as a scan, would wait for ever (web/frontend/src/shared/live_feed.ts).
"""

import re
from typing import Any

from aiohttp import web

from appliance.core.errors import ApiError, TerminalNotPaired, field_invalid
from appliance.environment import Environment
from appliance.venue.model import parse_date
from terminal_bridge.api.live_feed import Channel, DoorChannel, FeedStream
from terminal_bridge.api.protocol import encode, identify
from web.middleware import SECURE
from web.portal.cookies import BOX
from web.portal.evening import BoardChannel
from web.portal.guard import find_living_session

_PAGES_MAX = 64
# Page, environment, what it shows (`door`, or a board's date), and the last position it knows.
_PAGE = re.compile(r"([0-9a-f-]{1,40})!(live|test)!(door|\d{4}-\d\d-\d\d)!([0-9a-z-]{0,40})")


async def stream_changes(request: web.Request) -> web.StreamResponse:
    """`GET /live?page=…`: stream the changes for each page of a browser.

    Each `page` is `ID!ENVIRONMENT!SHOWS!AFTER`, for example `0c5e!live!2026-11-21!9f3a-12`. Each
    event is `{"to": ID, "kind": …, "id": position, "data": …}`. The kinds are those of the door
    protocol or of `BoardChannel`, `heartbeat`, and `over` when a page's rights have ended or were
    missing. Raises ValidationError, or TerminalNotPaired if no page may receive events.
    """
    channels = {}
    refused = []
    pages = request.query.getall("page", [])
    if not 0 < len(pages) <= _PAGES_MAX:
        raise field_invalid("page", "please give an allowed value.")
    for text in pages:
        found = _PAGE.fullmatch(text)
        if found is None:
            raise field_invalid("page", "please give an allowed value.")
        name, environment, shows, after = found.groups()
        box = request.app[BOX]
        chosen = box.test if environment == "test" else box.live
        channel = _channel(request, chosen, shows, after or None)
        if channel is None:
            refused.append(name)
        else:
            channels[name] = channel
    if not channels:
        raise TerminalNotPaired
    return _SharedStream(channels, refused)


def _channel(
    request: web.Request, environment: Environment, shows: str, after: str | None
) -> Channel | None:
    """Return the channel of a page, or None if the browser's cookies do not allow it."""
    secure = request.app[SECURE]
    if shows == "door":
        try:
            secure.demand(request)
            return DoorChannel(environment, identify(request, environment), after)
        except ApiError:  # the page's next call gets the reason
            return None
    session = find_living_session(request, request.app[BOX].live)
    day = parse_date(shows)
    may_see = secure.is_private(request) and secure.shows_portal(request)
    if session is None or day is None or not may_see:
        return None
    return BoardChannel(request, environment, session, day, after)


class _SharedStream(FeedStream):
    def __init__(self, channels: dict[str, Channel], refused: list[str]) -> None:
        super().__init__(channels)
        self._refused = refused

    async def write_eof(self, data: bytes = b"") -> None:
        # Send a comment immediately, so that the browser knows that the stream is open.
        first = ": open\n\n" + "".join(map(self.farewell, self._refused))
        await self.write(first.encode())
        await super().write_eof(data)

    def event(self, name: str, kind: str, position: str, data: dict[str, Any]) -> str:
        told = {"to": name, "kind": kind, "id": position, "data": data}
        return f"data: {encode(told)}\n\n"

    def heartbeat(self, name: str, position: str) -> str:
        return self.event(name, "heartbeat", position, {})

    def farewell(self, name: str) -> str:
        return self.event(name, "over", "", {})
