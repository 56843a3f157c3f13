"""What a request and the application carry, put there by the composition root."""

from collections.abc import Callable

from aiohttp import web

from appliance.environment import Environment
from terminal_bridge.pairing_tries import PairingTries
from terminal_bridge.readers.readers import Readers

ENVIRONMENT: web.RequestKey[Environment] = web.RequestKey("environment", Environment)
PAIRING_TRIES: web.AppKey[PairingTries] = web.AppKey("pairing tries", PairingTries)
SEARCH_PHONES: web.AppKey[Callable[[str], None]] = web.AppKey("search phones")
"""Counts a search by phone of the terminal of that id; RateLimited after too many."""
READERS: web.AppKey[Readers] = web.AppKey("readers", Readers)
STILL_MAY: web.RequestKey[Callable[[web.Request], object]] = web.RequestKey("still may")
"""Raises what the caller of a request is refused by now; absent where nobody was asked who
they are. It is handed the request: one that held itself would be garbage to be looked for."""


def look_again(request: web.Request) -> None:
    """A request was waited for: whoever was revoked meanwhile is refused, as by the next one."""
    if STILL_MAY in request:
        request[STILL_MAY](request)
