"""Middleware: host names, errors as answers, exceptions as 500, headers."""

import asyncio
from collections import Counter
from contextlib import suppress

from aiohttp import web

from appliance.core.errors import (
    ApiError,
    BodyTooLarge,
    InternalError,
    MethodNotAllowed,
    Misdirected,
    NotFound,
    Unavailable,
    log_exception,
)
from appliance.http.request import COMMON_HEADERS, Handler, refuse
from web.allowed_hosts import HOSTS

REQUESTS: web.AppKey[Counter[str]] = web.AppKey("requests", Counter)


@web.middleware
async def answer_everything(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every request in the documented form, and set the headers of every answer."""
    request.app[REQUESTS]["total"] += 1
    try:
        if not request.app[HOSTS].allows(request.host):
            raise Misdirected  # noqa: TRY301 - answered below like every error
        response = await handler(request)
    except ApiError as refusal:
        response = refuse(refusal)
    except web.HTTPException as exception:
        response = _documented(exception)
    except Exception as error:  # noqa: BLE001 - any exception is answered and logged
        note_exception(request, error)
        response = refuse(InternalError())
    if not response.prepared:
        set_headers(response)
    return response


def set_headers(response: web.StreamResponse) -> None:
    """Set the standard headers that the answer does not set itself."""
    if "Content-Security-Policy" in response.headers and "Server" in response.headers:
        return  # an answer of wire.py already has them
    for name, value in COMMON_HEADERS.items():
        response.headers.setdefault(name, value)


def _documented(exception: web.HTTPException) -> web.StreamResponse:
    """Convert aiohttp's errors to error bodies (interface, section 7); keep redirects."""
    kinds = (NotFound, MethodNotAllowed, BodyTooLarge, Unavailable)
    kind = {kind.status: kind for kind in kinds}.get(exception.status)
    if kind is None:
        return exception
    response = refuse(kind())
    if isinstance(exception, web.HTTPMethodNotAllowed):
        response.headers["Allow"] = ", ".join(sorted(exception.allowed_methods))
    return response


def note_exception(request: web.Request, error: Exception) -> None:
    """Log method, route and traceback; not a ConnectionError of a client that has left."""
    has_left = request.transport is None or request.transport.is_closing()
    if not (has_left and isinstance(error, ConnectionError)):
        resource = request.match_info.route.resource  # its pattern, unlike the path, has no token
        path = resource.canonical if resource is not None else "an unknown path"
        log_exception(f"{request.method} {path}", error)


class Drain:
    """Counts the requests of an application and waits for the last one to finish.

    aiohttp's own clean-up stops reading at once, which would cut off a booking whose body is
    still arriving. Call `wait` before it runs.
    """

    def __init__(self, app: web.Application) -> None:
        """Watch `app`, which must not have started yet."""
        self._in_flight = 0
        self._draining = False
        self._empty = asyncio.Event()
        app.middlewares.insert(0, self._count)

    async def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` until no request is in progress; return whether that succeeded.

        New requests on open keep-alive connections are answered, and the connection is closed.
        """
        self._draining = True
        if self._in_flight:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._empty.wait()
        return self._in_flight == 0

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._in_flight += 1
        try:
            response = await handler(request)
            if self._draining:
                response.force_close()
            return response
        finally:
            self._in_flight -= 1
            if self._draining and self._in_flight == 0:
                self._empty.set()
