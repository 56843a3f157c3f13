"""Which requests need https, and detection of reverse proxies that are not configured.

Callers through a proxy that is not in `server.trusted_proxies` count as one caller; a trusted
proxy that sends neither the client's address nor the scheme is as bad. `doctor` and the portal
say what to configure (docs/operations/https.md).
"""

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
    Handler,
    claims_https,
    household_of,
    is_loopback,
    is_private,
    is_trusted,
    networks_of,
    peer_of,
    wants_page,
)

_SAFE = frozenset({"GET", "HEAD"})
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")
_ONE_YEAR = "max-age=31536000"


class Secure:
    """Finds the box's https address, and decides which requests need https."""

    def __init__(self, server: ServerSettings, tls_port: int) -> None:
        """`tls_port` is the port on which this box serves TLS, 0 if it serves none."""
        self._proxies = networks_of(server.trusted_proxies)
        self.tls_port = tls_port
        self._allow_http = server.allow_http
        self._public = server.app_url if server.app_url.startswith("https://") else ""
        self._public_name = urlsplit(self._public).hostname
        self._has_a_public_address = is_public(server.app_url)
        strict = self._has_a_public_address and not server.allow_http
        self._strict_host = _host_of_https(server.app_url) if strict else ""

    def is_private(self, request: web.Request) -> bool:
        """Return whether a password may travel on this connection (docs/security.md, S6)."""
        return is_private(request, self._proxies)

    def caller_of(self, request: web.Request) -> str:
        """Return the client address for counting attempts, also behind trusted proxies."""
        return household_of(peer_of(request, self._proxies))

    def demand(self, request: web.Request) -> None:
        """Raise HttpsRequired if a key or token was sent over plain http."""
        if not self._allow_http and not self.is_private(request):
            raise HttpsRequired

    def is_this_machine(self, request: web.Request) -> bool:
        """Return whether the caller is on this machine.

        A proxy or tunnel on the box also connects from loopback, and so does a page whose name
        resolves to loopback. So Host must be this machine's, without forwarding headers. On a box
        with a public address the result is always False: a tunnel may pass on any header.
        """
        if self._has_a_public_address or any(name in request.headers for name in _FORWARDED):
            return False
        host = name_asked(request)
        return is_loopback(request.remote or "") and (host == "localhost" or is_loopback(host))

    @property
    def on_prepare(self) -> list[Callable[[web.Request, web.StreamResponse], Awaitable[None]]]:
        """Return the hooks for each answer; usually none."""
        return [self._add_strictness] if self._strict_host else []

    async def _add_strictness(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add Strict-Transport-Security to https answers under the public address.

        Not under local names: there a phone must reach the box before it trusts its certificate.
        """
        if request.host.lower() == self._strict_host and self.is_private(request):
            response.headers["Strict-Transport-Security"] = _ONE_YEAR

    def base_for(self, request: web.Request) -> str | None:
        """Return the box's https URL for this request: the public one under the public name.

        Under another name it is the box's own TLS port, or the public URL if there is no such port.
        """
        own = None if self._is_asked_publicly(request) else self._own_base(request)
        return own or self._public or None

    def elsewhere_for(self, request: web.Request) -> str | None:
        """Return the https URL of this request if it came over plain http, else None.

        Under the public name only a trusted proxy's X-Forwarded-Proto shows that. Without it, a
        redirect could lead back to itself.
        """
        if self.is_private(request) or claims_https(request):
            return None
        if not self._is_asked_publicly(request):
            return self._own_base(request)
        says = "X-Forwarded-Proto" in request.headers and is_trusted(request, self._proxies)
        return self._public if says else None

    def public_address_of(self, request: web.Request) -> str | None:
        """Return the https URL of a public page that was requested over plain http, else None.

        Local names are not redirected: the door works without the internet, and guests' phones do
        not trust the box's own certificate.
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
    """Return the host in the request's Host header, in lower case; "" if it is invalid."""
    try:
        return urlsplit(f"//{request.host}").hostname or ""
    except ValueError:  # an unclosed bracket
        return ""


def _host_of_https(url: str) -> str:
    """Return the Host of `url` if it is https on port 443, else "".

    HSTS covers every port of a name, so plain http on another port would stop working.
    """
    parts = urlsplit(url)
    usual = parts.scheme == "https" and parts.port in {None, 443}
    return (parts.hostname or "") if usual else ""


SECURE = web.AppKey("secure", Secure)


def kept_secret(handler: Handler) -> Handler:
    """Wrap a handler; raises HttpsRequired if the key or token came over plain http."""

    async def handle(request: web.Request) -> web.StreamResponse:
        request.app[SECURE].demand(request)
        return await handler(request)

    return handle


def led_to_https(handler: Handler) -> Handler:
    """Wrap a page; redirects to https where `public_address_of` gives a URL."""

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
_MOST = 5  # addresses that are reported
_MINUTE = 60.0


class ProxyWatch:
    """Detects misconfigured proxies; writes at most one alert per address and minute."""

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
        """Inspect every request of `app` from now on."""
        app.on_response_prepare.append(self._look)
        app.cleanup_ctx.append(self._run)

    async def _run(self, _app: web.Application) -> AsyncIterator[None]:
        """Drop the alerts of the previous run: the settings may have changed."""
        with suppress(Unavailable):
            await self._database.write(drop_alerts, {PROXY_UNKNOWN, PROXY_SILENT})
        yield
        await asyncio.gather(*self._writing)

    async def _look(self, request: web.Request, _response: web.StreamResponse) -> None:
        """Record what the request's headers reveal about a proxy."""
        remote, headers = request.remote or "", request.headers
        is_public = self._public is not None and name_asked(request) == self._public
        # Browsers send Sec-Fetch-Mode only over https and from loopback.
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
            # Internet clients may send such headers; the venue's proxies have private addresses.
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
    """Return whether `text` is an address of this machine or of a private network."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (getattr(address, "ipv4_mapped", None) or address).is_global
