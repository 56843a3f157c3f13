"""Around every request: host names, refusals as answers, exceptions as 500, headers."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from ipaddress import ip_address
from socket import gethostname
from urllib.parse import urlsplit

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
from appliance.http.json import COMMON_HEADERS, refuse

_HOST = re.compile(r"(?:([a-z0-9._-]+)|\[([0-9a-f:.]+)\])(?::\d{1,5})?", re.ASCII | re.IGNORECASE)


class Hosts:
    """Judges the Host header. Addresses, `localhost` and the box's own names are fine."""

    def __init__(
        self, addresses: tuple[str, ...], names: tuple[str, ...], slug: Callable[[], str]
    ) -> None:
        """`addresses` are our URLs; `slug` tells the venue's: the box is `<slug>.local`."""
        own = {(urlsplit(address).hostname or "").lower() for address in addresses}
        machine = gethostname().lower()
        self._names = {"localhost", machine, f"{machine}.local", *own}
        self._names |= {name.lower() for name in names}
        self._names.discard("")
        self._slug = slug

    def allows(self, host: str) -> bool:
        """Whether a request for `host` is answered.

        That is a name or an address and perhaps a port: no user, no zone, no path (RFC 9110, 7.2).
        """
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = (found[1] or found[2]).lower().removesuffix(".")
        try:
            return ip_address(name).version == (4 if found[1] else 6)
        except ValueError:
            ours = name in self._names or name == f"{self._slug().lower()}.local"
            return found[1] is not None and ours


HOSTS = web.AppKey("hosts", Hosts)


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
    except ApiError as refusal:
        response = refuse(refusal)
    except web.HTTPException as exception:
        response = _documented(exception)
    except Exception as error:  # noqa: BLE001 - whatever it was, it is answered and noted
        note_exception(request, error)
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


def note_exception(request: web.Request, error: Exception) -> None:
    """Log where it happened, unless nobody waits for the answer any more."""
    has_left = request.transport is None or request.transport.is_closing()
    if not (has_left and isinstance(error, ConnectionError)):
        resource = request.match_info.route.resource  # whose pattern, unlike the path, has no token
        path = resource.canonical if resource is not None else "an unknown path"
        log_exception(f"{request.method} {path}", error)


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
