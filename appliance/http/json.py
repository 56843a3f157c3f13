"""JSON over HTTP: read and strictly parse request bodies within limits; write responses."""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from msgspec.json import Encoder
from multidict import CIMultiDict

from appliance.core.errors import ApiError, BodyTooLarge, InvalidJson
from appliance.http.request import recheck_authorisation

_TROUBLING_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_DEEPEST = 32


def parse_object(raw: bytes) -> dict[str, Any]:
    """Parse a JSON object (docs/decisions/requests-and-errors.md).

    Raises InvalidJson for values other than objects, invalid UTF-8, duplicate members, NaN and
    infinities (1e999 too), lone surrogates, NUL characters, numbers of thousands of digits, and
    more than 32 levels.
    """
    try:
        text = raw.decode("utf-8")
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise InvalidJson from None
    if not isinstance(value, dict) or _is_deeper_than(value, _DEEPEST):
        raise InvalidJson
    if _TROUBLING_ESCAPE.search(text) and not _is_storable(value):
        raise InvalidJson
    return value


def _refuse_duplicates(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("duplicate member")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in {float("inf"), float("-inf")}:
        raise ValueError("out of range")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant, parse_float=_finite
)


def _is_deeper_than(value: Any, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        inner: list[Any] = []
        for item in layer:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return False
        layer = inner
    return True


def _is_storable(value: Any) -> bool:
    """Whether no string in `value` contains a NUL character or a lone surrogate."""
    if isinstance(value, str):
        return not any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, dict):
        return all(_is_storable(part) for pair in value.items() for part in pair)
    return not isinstance(value, list) or all(map(_is_storable, value))


# For responses that are not pages; pages set their own, wider policy.
COMMON_HEADERS: Mapping[str, str] = {
    "Server": "venuebox",  # does not reveal the library and its version
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_HEADERS = CIMultiDict({"Content-Type": "application/json", **COMMON_HEADERS})
_encode = Encoder().encode


def answer(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Create a JSON response."""
    response = web.Response(body=_encode(data), status=status, headers=_HEADERS)
    if headers:
        response.headers.update(headers)
    return response


def refuse(refusal: ApiError) -> web.Response:
    """Create an error response (interface, section 7)."""
    return answer(refusal.body(), refusal.status, refusal.headers)


BODY_LIMIT = 64 * 1024
_SECONDS = 30.0


async def read_object(
    request: web.Request, *, optional: bool = False, limit: int = BODY_LIMIT
) -> dict[str, Any]:
    """Read and parse the JSON object in the body; an `optional` body may be empty.

    Raises InvalidJson for other bodies and incomplete ones, and the errors of `read_body`.
    """
    raw = await read_body(request, limit)
    if raw is None:
        raise InvalidJson
    return {} if optional and not raw else parse_object(raw)


async def read_body(request: web.Request, limit: int = BODY_LIMIT) -> bytes | None:
    """Read the body; None if it does not arrive completely within 30 s.

    Raises BodyTooLarge above `limit` bytes (default 64 KiB), and the authorisation error if the
    caller's access was revoked in the meantime.
    """
    if (request.content_length or 0) > limit:
        raise BodyTooLarge
    if limit != BODY_LIMIT:  # the application's limit is BODY_LIMIT
        request = request.clone(client_max_size=limit + 1)
    try:
        if request.content.is_eof():  # the body arrived with the headers: nothing to wait for
            raw = await request.read()
        else:
            async with asyncio.timeout(_SECONDS):
                raw = await request.read()
            recheck_authorisation(request)
    except web.HTTPRequestEntityTooLarge:
        raise BodyTooLarge from None
    except (web.RequestPayloadError, TimeoutError):
        return None
    if len(raw) > limit:
        raise BodyTooLarge
    return raw
