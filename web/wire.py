"""JSON answers, and the headers of every answer that is no page."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from msgspec.json import Encoder
from multidict import CIMultiDict

from appliance.errors import Refusal

# For answers that are no page; pages bring their own, wider policy.
COMMON_HEADERS: Mapping[str, str] = {
    "Server": "venuebox",  # not which library in which version
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
    """A JSON answer."""
    response = web.Response(body=_encode(data), status=status, headers=_HEADERS)
    if headers:
        response.headers.update(headers)
    return response


def refuse(refusal: Refusal) -> web.Response:
    """A refusal (interface, section 7)."""
    return answer(refusal.body(), refusal.status, refusal.headers)
