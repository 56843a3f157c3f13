"""What may go without https; and reverse proxies that are noticed but not set up."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

from appliance.alerts import Alert, drop_alert, drop_alerts, put_alert
from appliance.box import Box
from appliance.core.errors import HttpsRequired, Unavailable
from appliance.core.network import https_base, is_public
from appliance.core.settings import ServerSettings
from appliance.http.request import (
    claims_https,
    household_of,
    is_loopback,
    is_private,
    is_trusted,
    networks_of,
    peer_of,
)
from web.middleware import Handler
from web.public_pages import wants_page

_SAFE = frozenset({"GET", "HEAD"})
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")
_ONE_YEAR = "max-age=31536000"


class Secure:
    """Where https is to be had, and what may go without it."""

    def __init__(self, server: ServerSettings, tls_port: int) -> None:
        """`tls_port` is where this box itself speaks TLS, 0 where it does not."""
        self._proxies = networks_of(server.trusted_proxies)
        self.tls_port = tls_port
        self._allow_http = server.allow_http
        self._public = server.app_url if server.app_url.startswith("https://") else ""
        self._public_name = urlsplit(self._public).hostname
        self._has_a_public_address = is_public(server.app_url)
        strict = self._has_a_public_address and not server.allow_http
        self._strict_host = _host_of_https(server.app_url) if strict else ""

    def is_private(self, request: web.Request) -> bool:
        """Whether a password may travel on this connection (docs/security.md, S6)."""
        return is_private(request, self._proxies)

    def caller_of(self, request: web.Request) -> str:
        """Under what the tries of whoever asks are counted: not a proxy that speaks for many."""
        return household_of(peer_of(request, self._proxies))

    def demand(self, request: web.Request) -> None:
        """HttpsRequired when a key or a token travelled where others may have read it."""
        if not self._allow_http and not self.is_private(request):
            raise HttpsRequired

    def is_this_machine(self, request: web.Request) -> bool:
        """Whether the caller sits at the box.

        A proxy or a tunnel on the box calls from loopback too, and so may a page that made its
        name resolve to loopback: the name asked for must be this machine's, and nobody's behind.
        A box with a public address believes none of it: a tunnel may hand on whatever a stranger
        writes, and tell nothing of him.
        """
        if self._has_a_public_address or any(name in request.headers for name in _FORWARDED):
            return False
        host = name_asked(request)
        return is_loopback(request.remote or "") and (host == "localhost" or is_loopback(host))

    @property
    def on_prepare(self) -> list[Callable[[web.Request, web.StreamResponse], Awaitable[None]]]:
        """What is done to each answer before it goes: nothing in most houses."""
        return [self._add_strictness] if self._strict_host else []

    async def _add_strictness(self, request: web.Request, response: web.StreamResponse) -> None:
        """Strict-Transport-Security on what a browser got from the public address over https.

        Not under the names that the box has in the house, where it must be reachable before a
        phone knows its certificate.
        """
        if request.host.lower() == self._strict_host and self.is_private(request):
            response.headers["Strict-Transport-Security"] = _ONE_YEAR

    def base_for(self, request: web.Request) -> str | None:
        """The https address of this box for whoever asks: the public one under its own name alone.

        Under any other name it is the box's own port; the public one where it has no such port.
        """
        own = None if self._is_asked_publicly(request) else self._own_base(request)
        return own or self._public or None

    def elsewhere_for(self, request: web.Request) -> str | None:
        """Where a page that was asked for in the open is certainly another one, over https.

        Under the public name only a trusted proxy knows that it was asked in the open: where a
        proxy says nothing, a redirect would lead back to itself.
        """
        if self.is_private(request) or claims_https(request):
            return None
        if not self._is_asked_publicly(request):
            return self._own_base(request)
        says = "X-Forwarded-Proto" in request.headers and is_trusted(request, self._proxies)
        return self._public if says else None

    def public_address_of(self, request: web.Request) -> str | None:
        """Where a page of the public address is read over https, when it was asked in the open.

        Under the names of the house nobody is led away: the door works without the internet, and
        guests' phones do not know the box's own certificate.
        """
        is_page = request.method in _SAFE and wants_page(request)
        if not is_page or not self._is_asked_publicly(request):
            return None
        base = self.elsewhere_for(request)
        return f"{base}{request.rel_url}" if base else None

    def _is_asked_publicly(self, request: web.Request) -> bool:
        return bool(self._public) and name_asked(request) == self._public_name

    def _own_base(self, request: web.Request) -> str | None:
        name = name_asked(request)
        return https_base(name, self.tls_port) if self.tls_port and name else None


def name_asked(request: web.Request) -> str:
    """The name or address in the request's Host, in lower case; nothing where it is none."""
    try:
        return urlsplit(f"//{request.host}").hostname or ""
    except ValueError:  # a bracket that nobody closed
        return ""


def _host_of_https(url: str) -> str:
    """The Host of `url` where it is https at the usual port, else nothing.

    Strictness reaches every port of a name, so that plain http at another would be lost.
    """
    parts = urlsplit(url)
    usual = parts.scheme == "https" and parts.port in {None, 443}
    return (parts.hostname or "") if usual else ""


SECURE = web.AppKey("secure", Secure)


def kept_secret(handler: Handler) -> Handler:
    """The handler for those who did not send their key or token in the open."""

    async def handle(request: web.Request) -> web.StreamResponse:
        request.app[SECURE].demand(request)
        return await handler(request)

    return handle


def led_to_https(handler: Handler) -> Handler:
    """The page, or the way to where it is read over https."""

    async def handle(request: web.Request) -> web.StreamResponse:
        elsewhere = request.app[SECURE].public_address_of(request)
        if elsewhere is not None:
            headers = {"Location": elsewhere, "Cache-Control": "no-store"}
            return web.Response(status=307, headers=headers)
        return await handler(request)

    return handle


PROXY_UNKNOWN = "proxy_unknown"
PROXY_SILENT = "proxy_says_nothing"
_FORWARDED_HEADERS = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP")
_NGINX = (
    "proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; "
    "proxy_set_header X-Forwarded-Proto $scheme;"
)
_MOST = 5  # addresses that are told of
_MINUTE = 60.0


class ProxyWatch:
    """Looks at each request, and writes about one address at most once a minute."""

    def __init__(self, box: Box) -> None:
        server = box.settings.server
        self._database = box.live.database
        self._clock = box.clock
        self._named = server.trusted_proxies
        self._proxies = networks_of(server.trusted_proxies)
        self._public = urlsplit(server.app_url).hostname if is_public(server.app_url) else None
        self._known: dict[tuple[str, str], tuple[bool, float]] = {}
        self._writing: set[asyncio.Task[None]] = set()

    def attach(self, app: web.Application) -> None:
        """Look at every request of `app` from now on."""
        app.on_response_prepare.append(self._look)
        app.cleanup_ctx.append(self._run)

    async def _run(self, _app: web.Application) -> AsyncIterator[None]:
        """Forget what was noted before the start: the settings may be others now."""
        with suppress(Unavailable):
            await self._database.write(drop_alerts, {PROXY_UNKNOWN, PROXY_SILENT})
        yield
        await asyncio.gather(*self._writing)

    async def _look(self, request: web.Request, _response: web.StreamResponse) -> None:
        """Note what the request tells of whoever handed it on."""
        remote, headers = request.remote or "", request.headers
        is_public = self._public is not None and name_asked(request) == self._public
        # Browsers send Sec-Fetch-Mode over https alone, and from loopback.
        away = is_public if is_loopback(remote) else "Sec-Fetch-Mode" in headers
        is_handed_on = away and not request.secure
        if self._proxies and is_trusted(request, self._proxies):
            says_how = request.secure or "X-Forwarded-Proto" in headers
            if says_how and "X-Forwarded-For" in headers:
                self._note(PROXY_SILENT, remote, "", holds=False)
            elif is_public or is_handed_on:
                self._note(PROXY_SILENT, remote, _NGINX, holds=True)
        elif is_handed_on or any(name in headers for name in _FORWARDED_HEADERS):
            line = f"trusted_proxies = {json.dumps([*self._named, remote])}"
            # Strangers on the internet may send such headers; the venue's proxies are nearer.
            if _is_near(remote):
                self._note(PROXY_UNKNOWN, remote, line, holds=True)

    def _note(self, name: str, address: str, detail: str, *, holds: bool) -> None:
        key, now = (name, address), self._clock.monotonic()
        held, since = self._known.get(key, (False, -_MINUTE))
        is_new = key not in self._known
        if held == holds or now - since < _MINUTE or (is_new and len(self._known) >= _MOST):
            return
        self._known[key] = holds, now
        task = asyncio.ensure_future(self._write(key, detail, holds=holds))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, key: tuple[str, str], detail: str, *, holds: bool) -> None:
        try:
            if holds:
                condition = Alert(*key, self._database.clock.now(), detail)
                await self._database.write(put_alert, condition)
            else:
                await self._database.write(drop_alert, *key)
        except Unavailable:
            self._known[key] = not holds, self._known[key][1]


def _is_near(text: str) -> bool:
    """Whether it is an address of this machine or of a private network."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (getattr(address, "ipv4_mapped", None) or address).is_global
