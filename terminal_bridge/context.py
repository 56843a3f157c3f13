"""What a request and the application carry, put there by the composition root."""

from collections.abc import Callable

from aiohttp import web

from appliance.environment import Environment
from appliance.rate_limit import RateLimit
from terminal_bridge.readers.readers import Readers

ENVIRONMENT: web.RequestKey[Environment] = web.RequestKey("environment", Environment)
CALLER_OF: web.AppKey[Callable[[web.Request], str]] = web.AppKey("caller of")
"""The address that a request counts for."""
PAIRING_TRIES: web.AppKey[RateLimit] = web.AppKey("pairing tries", RateLimit)
SEARCH_PHONES: web.AppKey[RateLimit] = web.AppKey("search phones", RateLimit)
"""Searches by phone, by the id of the terminal."""
READERS: web.AppKey[Readers] = web.AppKey("readers", Readers)
STILL_MAY: web.RequestKey[Callable[[web.Request], object]] = web.RequestKey("still may")
"""Raises what the caller of a request is refused by now; absent where nobody was asked who
they are. It is handed the request: one that held itself would be garbage to be looked for."""


def look_again(request: web.Request) -> None:
    """A request was waited for: whoever was revoked meanwhile is refused, as by the next one."""
    if STILL_MAY in request:
        request[STILL_MAY](request)
