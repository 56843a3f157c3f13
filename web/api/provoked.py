"""Answers that a partner provokes in the test environment with the header `X-Test-Answer`."""

import asyncio

from aiohttp import web

from appliance.core.errors import (
    ApiError,
    RateLimited,
    TableTaken,
    Unavailable,
    VenueInactive,
    not_among,
)

HEADER = "X-Test-Answer"
_REFUSALS: dict[str, type[ApiError]] = {
    kind.code: kind for kind in (TableTaken, VenueInactive, RateLimited, Unavailable)
}
SLOW = "slow"
SLOW_SECONDS = 12.0  # longer than clients usually wait


async def provoke(request: web.Request) -> None:
    """Refuse the call as its header `X-Test-Answer` asks, or wait 12 seconds.

    Raises ValidationError for an unknown value.
    """
    wanted = request.headers.get(HEADER)
    if wanted is None:
        return
    if wanted == SLOW:
        await asyncio.sleep(SLOW_SECONDS)
    elif wanted in _REFUSALS:
        raise _REFUSALS[wanted]
    else:
        raise not_among(HEADER, (*_REFUSALS, SLOW))
