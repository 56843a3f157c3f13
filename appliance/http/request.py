"""Request context: environment, same-origin check, client address, required principal.

Each route declares its principal. An undeclared route fails the build (docs/security.md, S3).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Literal

from aiohttp import web
from yarl import URL

from appliance.environment import Environment
from appliance.http.rate_limit import RateLimit

ENVIRONMENT: web.RequestKey[Environment] = web.RequestKey("environment", Environment)
CALLER_OF: web.AppKey[Callable[[web.Request], str]] = web.AppKey("caller of")
"""Returns the client address that rate limits count a request for."""
PAIRING_TRIES: web.AppKey[RateLimit] = web.AppKey("pairing tries", RateLimit)
SEARCH_PHONES: web.AppKey[RateLimit] = web.AppKey("search phones", RateLimit)
"""Rate limit of phone number searches, by terminal id."""
RECHECK_AUTHORISATION: web.RequestKey[Callable[[web.Request], object]] = web.RequestKey("still may")
"""Re-checks authorisation and raises the current error; unset on public routes. Takes the
request as an argument to avoid a reference cycle."""


def recheck_authorisation(request: web.Request) -> None:
    """Re-check authorisation after a wait. Raises the caller's current authorisation error."""
    if RECHECK_AUTHORISATION in request:
        request[RECHECK_AUTHORISATION](request)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who may call a route. `anybody` needs no authentication: links, pages and files.

    `needs` is the scope of the key, or the role that a staff member needs. The handlers in
    terminal_bridge check the roles of terminals.
    """

    kind: Literal["anybody", "key", "terminal", "staff"]
    needs: str | None = None


ANYBODY = Principal("anybody")
PRINCIPALS: web.AppKey[dict[tuple[str, str], Principal]] = web.AppKey("principals", dict)


_OWN_SITES = {"same-origin", "none"}


def is_from_our_page(request: web.Request, base: str) -> bool:
    """CSRF check: whether the request did not come from a page of another site.

    Sec-Fetch-Site decides if present. Otherwise Origin must be that of `base` (the guests'
    address) or of the request itself; `null` fails. Without either, the request must have no
    cookie.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in _OWN_SITES
    origin = request.headers.get("Origin")
    if origin is not None:
        return origin in {str(URL(base).origin()), f"{request.scheme}://{request.host}"}
    return "Cookie" not in request.headers


Networks = Sequence[IPv4Network | IPv6Network]
# Some proxies add the port, with brackets around an IPv6 address (RFC 7239, 6).
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d+)?|([^:]*):\d+")


def networks_of(texts: Sequence[str]) -> Networks:
    """Parse `server.trusted_proxies` into networks."""
    return [ip_network(text, strict=False) for text in texts]


def peer_of(request: web.Request, proxies: Networks) -> str:
    """Return the client address: the nearest one that is not a trusted proxy."""
    peer = request.remote or "unknown"
    if proxies and is_in(peer, proxies):
        # Some proxies append a header line of their own to the client's, which may be forged.
        lines = request.headers.getall("X-Forwarded-For", [])
        chain = [_address_in(part.strip()) for part in ",".join(lines).split(",")]
        for address in reversed([part for part in chain if part]):
            peer = address
            if not is_in(address, proxies):
                break
    return peer


def is_trusted(request: web.Request, proxies: Networks) -> bool:
    """Whether the request came from a trusted proxy."""
    return is_in(request.remote or "", proxies)


def _address_in(forwarded: str) -> str:
    found = _WITH_PORT.fullmatch(forwarded)
    return forwarded if found is None else found[1] or found[2] or ""


def is_private(request: web.Request, proxies: Networks) -> bool:
    """Whether the request came over TLS, here or at a trusted proxy, or over loopback."""
    if request.secure:
        return True
    remote = request.remote or ""
    if "X-Forwarded-Proto" in request.headers and is_in(remote, proxies):
        return claims_https(request)
    return is_loopback(remote)


def claims_https(request: web.Request) -> bool:
    """Whether X-Forwarded-Proto says https. Valid only from a trusted proxy."""
    said = request.headers.getall("X-Forwarded-Proto", [])
    return bool(said) and said[-1].rpartition(",")[2].strip() == "https"


@lru_cache(maxsize=1024)
def household_of(peer: str) -> str:
    """Return one key per caller: the /64 network of an IPv6 address, an IPv4 address as it is."""
    try:
        address = ip_address(peer)
    except ValueError:
        return peer
    if address.version == 4:
        return peer
    if address.ipv4_mapped is not None:  # IPv4 on a dual-stack socket
        return str(address.ipv4_mapped)
    return str(ip_network((address, 64), strict=False))


@lru_cache(maxsize=1024)
def is_loopback(address: str) -> bool:
    """Whether `address` is a loopback address."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def is_in(text: str, networks: Networks) -> bool:
    """Whether `text` is an address in one of `networks`."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return any(address in network for network in networks)
