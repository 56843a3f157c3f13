"""What may go without https, and where https is to be had."""

from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

from appliance.errors import HttpsRequired
from appliance.settings import ServerSettings
from web.middleware import Handler
from web.peer import claims_https, household_of, is_loopback, is_private, networks_of, peer_of
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
        self._has_a_public_address = is_public(server.app_url)
        strict = self._has_a_public_address and not server.allow_http
        self._strict_host = _host_of_https(server.app_url) if strict else ""

    def is_private(self, request: web.Request) -> bool:
        """Whether a password may travel on this connection (reliability.md S6)."""
        return is_private(request, self._proxies)

    def may_lead(self, request: web.Request) -> bool:
        """Whether who asks in the open may be led to https.

        Not who comes from there by a proxy that nobody trusts: the two would go round for ever.
        """
        return not (self.is_private(request) or claims_https(request))

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
        try:
            host = urlsplit(f"//{request.host}").hostname or ""
        except ValueError:  # a bracket that nobody closed
            return False
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
        """The https address of this box for whoever asks: the public one, else its own port."""
        if self._public:
            return self._public
        name = urlsplit(f"//{request.host}").hostname
        if not self.tls_port or name is None:
            return None
        shown = f"[{name}]" if ":" in name else name
        return f"https://{shown}" if self.tls_port == 443 else f"https://{shown}:{self.tls_port}"

    def public_address_of(self, request: web.Request) -> str | None:
        """Where a page should rather be read: under the public address, when it has one.

        The box's own certificate is unknown to guests' phones: nobody is sent there unasked.
        """
        if not self._public or request.method not in _SAFE or not wants_page(request):
            return None
        return f"{self._public}{request.rel_url}" if self.may_lead(request) else None


def is_public(app_url: str) -> bool:
    """Whether guests are sent to an address that lies outside the house."""
    host = (urlsplit(app_url).hostname or "").rstrip(".").lower()
    try:
        return not ip_address(host).is_private
    except ValueError:
        return "." in host and not host.endswith((".local", ".lan", ".home.arpa", ".internal"))


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
