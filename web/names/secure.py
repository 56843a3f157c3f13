"""What may go without https, and where https is to be had."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

from appliance.alone import https_base, is_public
from appliance.errors import HttpsRequired
from appliance.settings import ServerSettings
from web.middleware import Handler
from web.peer import (
    claims_https,
    household_of,
    is_loopback,
    is_private,
    is_trusted,
    networks_of,
    peer_of,
)
from web.public_page import wants_page

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
