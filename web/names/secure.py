"""What may go without https, and where https is to be had."""

from urllib.parse import urlsplit

from aiohttp import web

from appliance.errors import HttpsRequired
from appliance.settings import ServerSettings
from web.middleware import Handler
from web.peer import household_of, is_private, networks_of, peer_of
from web.public_page import wants_page

_SAFE = frozenset({"GET", "HEAD"})


class Secure:
    """Where https is to be had, and what may go without it."""

    def __init__(self, server: ServerSettings, tls_port: int) -> None:
        """`tls_port` is where this box itself speaks TLS, 0 where it does not."""
        self._proxies = networks_of(server.trusted_proxies)
        self.tls_port = tls_port
        self._allow_http = server.allow_http
        self._public = server.app_url if server.app_url.startswith("https://") else ""

    def is_private(self, request: web.Request) -> bool:
        """Whether a password may travel on this connection (reliability.md S6)."""
        return is_private(request, self._proxies)

    def caller_of(self, request: web.Request) -> str:
        """Under what the tries of whoever asks are counted: not a proxy that speaks for many."""
        return household_of(peer_of(request, self._proxies))

    def demand(self, request: web.Request) -> None:
        """HttpsRequired when a key or a token travelled where others may have read it."""
        if not self._allow_http and not self.is_private(request):
            raise HttpsRequired

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
        return None if self.is_private(request) else f"{self._public}{request.rel_url}"


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
