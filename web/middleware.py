"""Checks before every handler (Host, first start, https, API key), error responses and headers."""

import asyncio
import re
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from uuid import uuid4
from weakref import WeakValueDictionary

from aiohttp import HttpVersion11, web

from appliance.box import Box
from appliance.core.errors import (
    ApiError,
    BodyTooLarge,
    HeadersTooLarge,
    InternalError,
    MethodNotAllowed,
    Misdirected,
    NotFound,
    NotSetUp,
    Unavailable,
    UnknownIdentifier,
    log_exception,
)
from appliance.core.settings import Settings
from appliance.database.database import Database
from appliance.email.worker import EmailWorker
from appliance.environment import Environment
from appliance.http.request import (
    CALLER_OF,
    ENVIRONMENT,
    Handler,
    refuse,
    wants_page,
)
from appliance.http.security_headers import COMMON_HEADERS
from appliance.staff.accounts import is_closed
from appliance.venue.model import get_venue
from appliance.webhooks.dispatcher import Dispatcher
from web.api.authentication import KEY, SPENT, Gate
from web.api.provoked import provoke
from web.hosts import READING, Hosts, HttpsPolicy, redirect

ErrorPage = Callable[[web.Request, Exception], web.StreamResponse | None]

SETUP_PATH = "/portal/setup"
_OPEN_AT_FIRST_START = frozenset({SETUP_PATH, "/health", "/ready"})
_OPEN_FOLDERS = ("/static/",)
# Errors under these paths are never HTML pages.
_API_PATHS = re.compile(r"(?:/test)?/*(?:v1|terminal|static)(?:/|\Z)")
_PORTAL_PATHS = re.compile(r"(?:/test)?/portal(?:/|\Z)")
_NEVER_WAITING = re.compile(r"(?:/test)?/*(?:v1|terminal)/|/live\Z")
_PAGES_AT_ONCE = 4
_REFUSED = frozenset({401, 403, 404, 405, 429})
_PARTNER_PATHS = re.compile(r"(?:/test)?/+v1(?:/|\Z)")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,64}")
# Headers for which aiohttp's parsing time grows nearly with the square of their length.
_PARSED, _PARSED_MAX = ("Content-Type", "If-Match", "If-None-Match"), 1000
_DRAIN_STEP_SECONDS = 0.01
_DOCUMENTED = (NotFound, MethodNotAllowed, BodyTooLarge, Unavailable)


@dataclass(slots=True)
class Requests:
    """Counts the application's requests, and waits for requests in progress at shutdown."""

    total: int = 0
    in_progress: int = 0
    is_draining: bool = False

    async def drain(self, seconds: float) -> bool:
        """Wait up to `seconds` for all requests to finish. Return whether they did.

        Call this before aiohttp's own cleanup, which stops reading immediately and would cut off
        a booking whose body is still arriving. Meanwhile, new requests on keep-alive
        connections are still handled, but these connections are then closed.
        """
        self.is_draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.in_progress:  # noqa: ASYNC110 - polls only at shutdown
                    await asyncio.sleep(_DRAIN_STEP_SECONDS)
        return self.in_progress == 0


class FirstStart:
    """Restricts a box without an owner to its setup page (docs/security.md, S8).

    Once the box has an owner, the database is no longer queried.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_closed = database.peek(is_closed)

    def redirect(self, request: web.Request) -> web.Response | None:
        """Return a redirect to the setup page, or None if the request is allowed.

        The setup page itself is redirected from plain http to https. The setup link's secret is not
        lost, because it follows `#` and browsers keep this part of the URL. Raises NotSetUp for a
        request that cannot be redirected.
        """
        self._is_closed = self._is_closed and self._database.look_up(is_closed)
        if not self._is_closed:
            return None
        is_reading = request.method in READING
        if is_reading and request.path == SETUP_PATH:
            base = request.app[SECURE].redirect_base(request)
            return redirect(307, f"{base}{SETUP_PATH}") if base else None
        if request.path in _OPEN_AT_FIRST_START or request.path.startswith(_OPEN_FOLDERS):
            return None
        if is_reading and wants_page(request):
            return redirect(303, SETUP_PATH)
        raise NotSetUp


@dataclass(frozen=True, slots=True)
class Services:
    """One environment's services while the application runs."""

    environment: Environment
    gate: Gate
    email_worker: EmailWorker
    dispatcher: Dispatcher
    idempotency_locks: WeakValueDictionary[Hashable, asyncio.Lock] = field(
        default_factory=WeakValueDictionary
    )
    """One lock for each idempotency key in use (docs/decisions/idempotency.md)."""


REQUESTS = web.AppKey("requests", Requests)
TURNS: web.AppKey[WeakValueDictionary[str, asyncio.Semaphore]] = web.AppKey("turns")
HOSTS = web.AppKey("hosts", Hosts)
SECURE = web.AppKey("secure", HttpsPolicy)
FIRST_START = web.AppKey("first_start", FirstStart)
SERVICES: web.RequestKey[Services] = web.RequestKey("services", Services)
REQUEST_ID: web.RequestKey[str] = web.RequestKey("request id", str)
"""The `X-Request-ID` of a partner API call. It is the client's id if that is valid, else a new one.
"""
ERROR_PAGE: web.AppKey[ErrorPage] = web.AppKey("error_page")
"""Returns the error page for a browser's request, or None to send the documented error."""


@web.middleware
async def answer_everything(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Check every request, convert every error to its documented response, and set the headers.

    Only a few pages for one client are made at a time, so that scans go in between. A client may
    hold 200 connections. If it asked for a page on each at once, a scan would wait until all are
    made. Terminals, partners and forms wait only if they are refused.
    """
    app, path = request.app, request.path
    requests = app[REQUESTS]
    requests.total += 1
    requests.in_progress += 1
    if _PARTNER_PATHS.match(path):
        sent = request.headers.get("X-Request-ID", "")
        request[REQUEST_ID] = sent if _REQUEST_ID.fullmatch(sent) else str(uuid4())
    waits = request.method in READING and not _NEVER_WAITING.match(path)
    try:
        _check_headers(request)
        response = await (_take_turn(request, handler) if waits else _handle(request, handler))
    except ApiError as refusal:
        response = refuse(refusal)
    except web.HTTPException as exception:
        response = _documented(exception)
    except Exception as error:  # noqa: BLE001 - converted to a response and logged
        note_exception(request, error)
        response = refuse(InternalError())
    finally:
        requests.in_progress -= 1
    if response.status in _REFUSED and not waits:
        async with _turn_of(request):
            await asyncio.sleep(0)
    if not response.prepared:
        set_headers(response)
        _set_call_headers(request, response)
    # Do not reuse HTTP/1.0 connections. A proxy and the box may disagree about where a chunked
    # request ends (RFC 9112, section 6.1).
    if requests.is_draining or request.version < HttpVersion11:
        response.force_close()
    return response


def _check_headers(request: web.Request) -> None:
    """Raise Misdirected for a foreign Host header, and HeadersTooLarge for one to be parsed."""
    if not request.app[HOSTS].allows(request.host):
        raise Misdirected
    if any(len(request.headers.get(name, "")) > _PARSED_MAX for name in _PARSED):
        raise HeadersTooLarge


def _set_call_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers of a partner's call. A 304 does not count against the rate."""
    if REQUEST_ID in request:
        response.headers["X-Request-ID"] = request[REQUEST_ID]
    if SPENT in request:
        limit, caller, name = request[SPENT]
        if response.status == HTTPStatus.NOT_MODIFIED:
            limit.give_back(caller)
        response.headers.update(limit.headers(caller, name))


async def _take_turn(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Handle the request while fewer than _PAGES_AT_ONCE of the same client are handled."""
    async with _turn_of(request):
        await asyncio.sleep(0)  # handle other connections first
        return await _handle(request, handler)


def _turn_of(request: web.Request) -> asyncio.Semaphore:
    caller = request.app[CALLER_OF](request)
    return request.app[TURNS].setdefault(caller, asyncio.Semaphore(_PAGES_AT_ONCE))


async def _handle(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Call the handler, unless the box has no owner yet or the portal is not shown to the caller.

    If the request fails, browsers get an HTML page (web/error_pages.py). Under API paths, errors
    are always JSON, regardless of the Accept header.
    """
    elsewhere = request.app[FIRST_START].redirect(request)
    if elsewhere is not None:
        return elsewhere
    try:
        resource = request.match_info.route.resource
        is_portal = resource is not None and _PORTAL_PATHS.match(resource.canonical)
        if is_portal and not request.app[SECURE].shows_portal(request):
            raise web.HTTPNotFound  # noqa: TRY301 - the page below
        return await handler(request)
    except Exception as error:
        is_page = wants_page(request) and not _API_PATHS.match(request.path)
        page = request.app[ERROR_PAGE](request, error) if is_page else None
        if page is None:
            raise
        return page


def add_checks(app: web.Application, box: Box, tls_port: int, error_page: ErrorPage) -> None:
    """Add this module's middleware, and the objects that it needs, to `app`."""
    server = box.settings.server

    def slug() -> str:
        return box.live.database.peek(get_venue).slug

    app[REQUESTS] = Requests()
    app[HOSTS] = Hosts((box.live.links.base, server.app_url), server.names, slug)
    app[FIRST_START] = FirstStart(box.live.database)
    app[ERROR_PAGE] = error_page
    app[SECURE] = HttpsPolicy(server, tls_port)
    app[CALLER_OF] = app[SECURE].caller_of
    app[TURNS] = WeakValueDictionary()
    app.middlewares.append(answer_everything)
    app.on_response_prepare.append(app[SECURE].add_hsts)

    def read(settings: Settings) -> None:
        app[SECURE].read(settings.server)
        app[HOSTS].read((box.live.links.base, settings.server.app_url), settings.server.names)

    box.on_settings.append(read)


def set_headers(response: web.StreamResponse) -> None:
    """Add the common headers that the response does not already have.

    JSON answers have them all already.
    """
    if "Server" in response.headers:
        return
    for name, value in COMMON_HEADERS.items():
        response.headers.setdefault(name, value)


def _documented(exception: web.HTTPException) -> web.StreamResponse:
    """Convert aiohttp's errors to documented errors (interface, section 7). Keep redirects."""
    kind = next((kind for kind in _DOCUMENTED if kind.status == exception.status), None)
    if kind is None:
        return exception
    response = refuse(kind())
    if isinstance(exception, web.HTTPMethodNotAllowed):
        response.headers["Allow"] = ", ".join(sorted(exception.allowed_methods))
    return response


def note_exception(request: web.Request, error: Exception) -> None:
    """Log an exception with the method, route and request id.

    A ConnectionError is not logged if the client has disconnected.
    """
    has_left = request.transport is None or request.transport.is_closing()
    if not (has_left and isinstance(error, ConnectionError)):
        # Log the route's pattern, because the path may contain a token.
        resource = request.match_info.route.resource
        path = resource.canonical if resource is not None else "an unknown path"
        name = f" (request {request[REQUEST_ID]})" if REQUEST_ID in request else ""
        log_exception(f"{request.method} {path}{name}", error)


def with_key(handler: Handler, scope: str, services: Services, budget: str) -> Handler:
    """Wrap a partner API handler: check https, key, rate limit and scope before it runs.

    Its NotFound becomes UnknownIdentifier, whose message says more to a partner.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        request.app[SECURE].demand(request)
        request[KEY] = services.gate.admit(request, scope, budget)
        request[ENVIRONMENT], request[SERVICES] = services.environment, services
        if services.environment.name == "test":
            await provoke(request)
        try:
            return await handler(request)
        except NotFound as error:
            raise UnknownIdentifier from error

    return handle


def in_environment(
    handler: Handler,
    services: Services,
    check: Callable[[web.Request], web.Response | None] = lambda _request: None,
) -> Handler:
    """Wrap a handler that is public or authenticates its caller itself.

    `check` runs first. If it returns a response, this response is sent instead.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        request[ENVIRONMENT], request[SERVICES] = services.environment, services
        response = check(request)
        return await handler(request) if response is None else response

    return handle
