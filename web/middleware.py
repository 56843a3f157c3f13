"""Around every request: refusals become answers, accidents become a 500, headers are set."""

import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from appliance.errors import (
    BodyTooLarge,
    InternalError,
    MethodNotAllowed,
    NotFound,
    Refusal,
    Unavailable,
)
from web.wire import refuse

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# For answers that are no page; pages bring their own, wider policy.
_HEADERS = (
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(self), geolocation=(), microphone=()"),
    ("Cache-Control", "no-store"),
)


@web.middleware
async def answer_everything(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give every request an answer in the documented form, and every answer its headers."""
    try:
        response = await handler(request)
    except Refusal as refusal:
        response = refuse(refusal)
    except web.HTTPException as exception:
        response = _documented(exception)
    except Exception:
        # The exception's text may hold what a guest wrote; its place in the code does not.
        log.exception("%s %s failed", request.method, _route_of(request))
        response = refuse(InternalError())
    if not response.prepared:
        headers = response.headers
        for name, value in _HEADERS:
            if name not in headers:
                headers[name] = value
    return response


def _documented(exception: web.HTTPException) -> web.StreamResponse:
    """aiohttp's own refusals, in the form of section 7; redirects as they are."""
    if isinstance(exception, web.HTTPNotFound):
        return refuse(NotFound())
    if isinstance(exception, web.HTTPMethodNotAllowed):
        response = refuse(MethodNotAllowed())
        response.headers["Allow"] = ", ".join(sorted(exception.allowed_methods))
        return response
    if isinstance(exception, web.HTTPRequestEntityTooLarge):
        return refuse(BodyTooLarge())
    if exception.status == Unavailable.status:
        return refuse(Unavailable())
    return exception


def _route_of(request: web.Request) -> str:
    """The route's pattern: unlike the path it carries no token."""
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "an unknown path"
