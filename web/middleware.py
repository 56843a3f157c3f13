"""Around every request: refusals become answers, accidents become a 500, headers are set."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import web

from appliance.accidents import log_accident
from appliance.errors import (
    BodyTooLarge,
    InternalError,
    MethodNotAllowed,
    Misdirected,
    NotFound,
    Refusal,
    Unavailable,
)
from web.hosts import HOSTS
from web.wire import COMMON_HEADERS, refuse

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


REQUESTS: web.AppKey[Counter[str]] = web.AppKey("requests", Counter)


@web.middleware
async def answer_everything(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give every request an answer in the documented form, and every answer its headers."""
    request.app[REQUESTS]["total"] += 1
    try:
        if not request.app[HOSTS].allows(request.host):
            raise Misdirected  # noqa: TRY301 - answered below like every refusal
        response = await handler(request)
    except Refusal as refusal:
        response = refuse(refusal)
    except web.HTTPException as exception:
        response = _documented(exception)
    except Exception as error:  # noqa: BLE001 - whatever it was, it is answered and noted
        note_accident(request, error)
        response = refuse(InternalError())
    if not response.prepared:
        set_headers(response)
    return response


def set_headers(response: web.StreamResponse) -> None:
    """The headers that every answer has, where it brings none of its own."""
    if "Content-Security-Policy" in response.headers and "Server" in response.headers:
        return  # an answer of wire.py has them from the start
    for name, value in COMMON_HEADERS.items():
        response.headers.setdefault(name, value)


def _documented(exception: web.HTTPException) -> web.StreamResponse:
    """aiohttp's own refusals as error bodies (interface, section 7); redirects as they are."""
    kinds = (NotFound, MethodNotAllowed, BodyTooLarge, Unavailable)
    kind = {kind.status: kind for kind in kinds}.get(exception.status)
    if kind is None:
        return exception
    response = refuse(kind())
    if isinstance(exception, web.HTTPMethodNotAllowed):
        response.headers["Allow"] = ", ".join(sorted(exception.allowed_methods))
    return response


def note_accident(request: web.Request, error: Exception) -> None:
    """Log where it happened, unless nobody waits for the answer any more."""
    has_left = request.transport is None or request.transport.is_closing()
    if not (has_left and isinstance(error, ConnectionError)):
        resource = request.match_info.route.resource  # whose pattern, unlike the path, has no token
        path = resource.canonical if resource is not None else "an unknown path"
        log_accident(f"{request.method} {path}", error)


class Drain:
    """Counts the requests of an application, and tells when the last one is done.

    aiohttp's own clean-up stops reading at once, which would cut off a booking whose body is
    still on its way. Until it runs, this waits for the requests in progress.
    """

    def __init__(self, app: web.Application) -> None:
        """Watch `app`, which has not started yet."""
        self._in_flight = 0
        self._draining = False
        self._empty = asyncio.Event()
        app.middlewares.insert(0, self._count)

    async def wait(self, seconds: float) -> bool:
        """Wait until nothing is in flight, at most `seconds`; whether that came true.

        Whoever still sends on a connection that was kept open is answered and let go.
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
