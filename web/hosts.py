"""By which names and over what the box is reached: Host header, https, who may see the portal."""

import re
import socket
from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import HttpVersion11, web

from appliance.core.errors import HttpsRequired
from appliance.core.network import https_base, is_public
from appliance.core.settings import ServerSettings
from appliance.http.request import (
    address_of,
    caller_key,
    claims_https,
    is_loopback,
    is_private,
    is_relayed,
    is_trusted,
    networks_of,
    peer_of,
    wants_page,
)

READING = frozenset({"GET", "HEAD"})
_HOST = re.compile(r"(?:([a-z0-9._-]+)|\[([0-9a-f:.]+)\])(?::\d{1,5})?", re.ASCII | re.IGNORECASE)
_FORWARDED = (
    "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via",
    "CF-Connecting-IP", "True-Client-IP",
)  # fmt: skip
_ONE_YEAR = "max-age=31536000"


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
        is_page = request.method in READING and wants_page(request)
        if not is_page or not self._uses_public_name(request):
            return None
        base = self.redirect_base(request)
        return redirect(307, f"{base}{request.rel_url}") if base else None

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


def redirect(status: int, location: str) -> web.Response:
    """Return a redirect that is not cached."""
    headers = {"Location": location, "Cache-Control": "no-store"}
    return web.Response(status=status, headers=headers)
