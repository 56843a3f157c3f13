"""Checks before every handler (Host, first start, https, API key), error responses and headers."""

import asyncio
import re
import socket
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit
from uuid import uuid4
from weakref import WeakValueDictionary

from aiohttp import HttpVersion11, web

from appliance.box import Box
from appliance.core.errors import (
    ApiError,
    BodyTooLarge,
    HeadersTooLarge,
    HttpsRequired,
    InternalError,
    MethodNotAllowed,
    Misdirected,
    NotFound,
    NotSetUp,
    Unavailable,
    UnknownIdentifier,
    log_exception,
)
from appliance.core.network import https_base, is_public
from appliance.core.settings import ServerSettings, Settings
from appliance.database.database import Database
from appliance.email.worker import EmailWorker
from appliance.environment import Environment
from appliance.http.request import (
    CALLER_OF,
    ENVIRONMENT,
    Handler,
    address_of,
    caller_key,
    claims_https,
    is_loopback,
    is_private,
    is_relayed,
    is_trusted,
    networks_of,
    peer_of,
    refuse,
    wants_page,
)
from appliance.http.security_headers import COMMON_HEADERS
from appliance.staff.accounts import is_closed
from appliance.venue.model import get_venue
from appliance.webhooks.dispatcher import Dispatcher
from web.api.authentication import KEY, SPENT, Gate
from web.api.provoked import provoke

ErrorPage = Callable[[web.Request, Exception], web.StreamResponse | None]

SETUP_PATH = "/portal/setup"
_OPEN_AT_FIRST_START = frozenset({SETUP_PATH, "/health", "/ready"})
_OPEN_FOLDERS = ("/static/",)
_HOST = re.compile(r"(?:([a-z0-9._-]+)|\[([0-9a-f:.]+)\])(?::\d{1,5})?", re.ASCII | re.IGNORECASE)
# Errors under these paths are never HTML pages.
_API_PATHS = re.compile(r"(?:/test)?/*(?:v1|terminal|static)(?:/|\Z)")
_PORTAL_PATHS = re.compile(r"(?:/test)?/portal(?:/|\Z)")
_NEVER_WAITING = re.compile(r"(?:/test)?/*(?:v1|terminal)/|/live\Z")
_PAGES_AT_ONCE = 4
_REFUSED = frozenset({401, 403, 404, 405, 429})
_PARTNER_PATHS = re.compile(r"(?:/test)?/+v1(?:/|\Z)")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,64}")
_FORWARDED = (
    "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via",
    "CF-Connecting-IP", "True-Client-IP",
)  # fmt: skip
# Headers for which aiohttp's parsing time grows nearly with the square of their length.
_PARSED, _PARSED_MAX = ("Content-Type", "If-Match", "If-None-Match"), 1000
_READING = frozenset({"GET", "HEAD"})
_DRAIN_STEP_SECONDS = 0.01
_DOCUMENTED = (NotFound, MethodNotAllowed, BodyTooLarge, Unavailable)
_ONE_YEAR = "max-age=31536000"


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


class Hosts:
    """Checks the Host header (docs/security.md, S14).

    Only IP addresses and the box's own names are allowed. This prevents DNS rebinding, in which
    another site makes its name resolve to the box's address and then reads the box's responses in
    the visitor's browser.
    """

    def __init__(
        self, addresses: tuple[str, ...], names: tuple[str, ...], slug: Callable[[], str]
    ) -> None:
        """Allow the hosts in the URLs `addresses`, and the host names `names`.

        `slug` returns the venue's slug, because the box is also called `<slug>.local`.
        """
        self._slug = slug
        self.read(addresses, names)

    def read(self, addresses: tuple[str, ...], names: tuple[str, ...]) -> None:
        """Allow these hosts instead."""
        own = (urlsplit(address).hostname or "" for address in addresses)
        machine = socket.gethostname()
        known = ("localhost", machine, f"{machine}.local", *own, *names)
        self._names = {name.lower() for name in known if name}

    def allows(self, host: str) -> bool:
        """Return whether requests for `host` are allowed.

        `host` must be a name or address with an optional port (RFC 9110, section 7.2).
        """
        name = _parse_host(host)
        if name is None:
            return False
        is_known = name == _AN_ADDRESS or name in self._names
        return is_known or name == f"{self._slug().lower()}.local"


_AN_ADDRESS = "[address]"  # no host name contains a bracket


@lru_cache(maxsize=64)
def _parse_host(host: str) -> str | None:
    """Return the host name in lower case, _AN_ADDRESS for an IP address, or None if invalid."""
    found = _HOST.fullmatch(host)
    if found is None:
        return None
    name = (found[1] or found[2]).lower().removesuffix(".")
    try:
        return _AN_ADDRESS if ip_address(name).version == (4 if found[1] else 6) else None
    except ValueError:
        return name if found[1] else None


class HttpsPolicy:
    """Finds the box's https URL, and decides who needs https and who may see the portal."""

    def __init__(self, server: ServerSettings, tls_port: int) -> None:
        """Read the settings. `tls_port` is the port on which this box serves TLS, or 0 for none."""
        self.tls_port = tls_port
        self.read(server)

    def read(self, server: ServerSettings) -> None:
        """Read the settings, which have changed."""
        self._proxies = networks_of(server.trusted_proxies)
        self._allow_http = server.allow_http
        url = urlsplit(server.app_url)
        is_https = url.scheme == "https"
        self._public = server.app_url if is_https else ""
        self._public_name = url.hostname if is_https else None
        self._has_public_address = is_public(server.app_url)
        self._has_public_portal = server.public_portal
        self._guests_name = url.hostname if self._has_public_address else None
        is_strict = is_https and self._has_public_address and not server.allow_http
        # Send HSTS only if the public URL uses port 443. HSTS applies to all ports of a host name,
        # so plain http on another port of this name would stop working.
        self.hsts_host = url.hostname if is_strict and url.port in {None, 443} else None

    def is_private(self, request: web.Request) -> bool:
        """Return whether a password may be sent over this connection (docs/security.md, S6)."""
        return is_private(request, self._proxies)

    def caller_of(self, request: web.Request) -> str:
        """Return the client's address for rate limits, even if it is behind trusted proxies."""
        return caller_key(peer_of(request, self._proxies), by_relay=is_relayed(request))

    def demand(self, request: web.Request) -> None:
        """Raise HttpsRequired if the request came over plain http, unless the settings allow it."""
        if not self._allow_http and not self.is_private(request):
            raise HttpsRequired

    def is_this_machine(self, request: web.Request) -> bool:
        """Return whether the caller is on this machine.

        A loopback connection alone does not prove this, because it may come from a proxy or tunnel
        on the box, or from a page whose host name resolves to loopback. Therefore, the Host header
        must contain `localhost` or a loopback address, and there must be no forwarding headers.

        On a box with a public address, return False, because a tunnel could forward any header.
        Also return False for HTTP/1.0: by default, nginx forwards requests with this version and
        adds no header.
        """
        if self._has_public_address or request.version < HttpVersion11:
            return False
        if any(name in request.headers for name in _FORWARDED):
            return False
        host = requested_name(request)
        return is_loopback(request.remote or "") and (host == "localhost" or is_loopback(host))

    def shows_portal(self, request: web.Request) -> bool:
        """Return whether the portal may be shown to this caller.

        Unless `server.public_portal` is set, only callers in the local network may see the portal.
        Requests for the public host name and requests through a proxy do not count as local. On a
        box with a public address, neither do loopback connections, because they may come from a
        tunnel.
        """
        if self._has_public_portal:
            return True
        is_forwarded = any(name in request.headers for name in _FORWARDED)
        if is_relayed(request) or is_forwarded or is_trusted(request, self._proxies):
            return False
        address = address_of(request.remote or "")
        if address is None or address.is_global or requested_name(request) == self._guests_name:
            return False
        return not (address.is_loopback and self._has_public_address)

    async def add_hsts(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add Strict-Transport-Security to https responses for the public host name.

        Local names are excluded. A phone installs the box's certificate over plain http, which HSTS
        would prevent.
        """
        if self.hsts_host and request.host.lower() == self.hsts_host and self.is_private(request):
            response.headers["Strict-Transport-Security"] = _ONE_YEAR

    def base_for(self, request: web.Request) -> str | None:
        """Return the box's https base URL for this request, or None if it has no https.

        If the request used the public name, or the box has no TLS port, return the public URL.
        Otherwise return the URL of the box's own TLS port.
        """
        own = None if self._uses_public_name(request) else self._own_base(request)
        return own or self._public or None

    def redirect_base(self, request: web.Request) -> str | None:
        """Return the https base URL to redirect a plain http request to, or None for no redirect.

        If the request used the public name, redirect it only if a trusted proxy's X-Forwarded-Proto
        header shows plain http. Without this header, the client may have used https to the proxy,
        and a redirect would loop.
        """
        if self.is_private(request) or claims_https(request):
            return None
        if not self._uses_public_name(request):
            return self._own_base(request)
        is_known = "X-Forwarded-Proto" in request.headers and is_trusted(request, self._proxies)
        return self._public if is_known else None

    def redirect(self, request: web.Request) -> web.Response | None:
        """Return a redirect to https if a page was requested over plain http at the public name.

        Local names are not redirected, because the door must work without the internet and
        guests' phones do not trust the box's own certificate.
        """
        is_page = request.method in _READING and wants_page(request)
        if not is_page or not self._uses_public_name(request):
            return None
        base = self.redirect_base(request)
        return _redirect(307, f"{base}{request.rel_url}") if base else None

    def _uses_public_name(self, request: web.Request) -> bool:
        return bool(self._public) and requested_name(request) == self._public_name

    def _own_base(self, request: web.Request) -> str | None:
        name = requested_name(request)
        return https_base(name, self.tls_port) if self.tls_port and name else None


def requested_name(request: web.Request) -> str:
    """Return the host from the request's Host header in lower case, or "" if it is invalid."""
    try:
        return urlsplit(f"//{request.host}").hostname or ""
    except ValueError:  # the host has an unclosed bracket
        return ""


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
        is_reading = request.method in _READING
        if is_reading and request.path == SETUP_PATH:
            base = request.app[SECURE].redirect_base(request)
            return _redirect(307, f"{base}{SETUP_PATH}") if base else None
        if request.path in _OPEN_AT_FIRST_START or request.path.startswith(_OPEN_FOLDERS):
            return None
        if is_reading and wants_page(request):
            return _redirect(303, SETUP_PATH)
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
    waits = request.method in _READING and not _NEVER_WAITING.match(path)
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
    redirect = request.app[FIRST_START].redirect(request)
    if redirect is not None:
        return redirect
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


def _redirect(status: int, location: str) -> web.Response:
    headers = {"Location": location, "Cache-Control": "no-store"}
    return web.Response(status=status, headers=headers)
