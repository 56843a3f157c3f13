"""The body of a request: all of it, within its limits, as one JSON object."""

import asyncio
from typing import Any

from aiohttp import web

from appliance.errors import BodyTooLarge, InvalidJson
from appliance.model.strict_json import parse_object
from terminal_bridge.context import look_again

BODY_LIMIT = 64 * 1024
_SECONDS = 30.0


async def read_object(
    request: web.Request, *, optional: bool = False, limit: int = BODY_LIMIT
) -> dict[str, Any]:
    """The JSON object in the body; an `optional` one may be empty.

    InvalidJson for anything else, and for a body that did not arrive whole; others as `read_body`.
    """
    raw = await read_body(request, limit)
    if raw is None:
        raise InvalidJson
    return {} if optional and not raw else parse_object(raw)


async def read_body(request: web.Request, limit: int = BODY_LIMIT) -> bytes | None:
    """The body; None when it is not here within 30 s or does not end as it announced.

    BodyTooLarge over `limit` bytes, 64 KiB unless said. Refusals of the caller who may no longer
    send it by then.
    """
    if (request.content_length or 0) > limit:
        raise BodyTooLarge
    if limit != BODY_LIMIT:  # the application's own limit is that of every other request
        request = request.clone(client_max_size=limit + 1)
    try:
        if request.content.is_eof():  # it came along with its head: there is nothing to wait for
            raw = await request.read()
        else:
            async with asyncio.timeout(_SECONDS):
                raw = await request.read()
            look_again(request)
    except web.HTTPRequestEntityTooLarge:
        raise BodyTooLarge from None
    except (web.RequestPayloadError, TimeoutError):
        return None
    if len(raw) > limit:
        raise BodyTooLarge
    return raw
