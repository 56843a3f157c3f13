"""What a request carries: its environment, its origin, its client's address, who may call."""

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
"""The address that a request counts for."""
PAIRING_TRIES: web.AppKey[RateLimit] = web.AppKey("pairing tries", RateLimit)
SEARCH_PHONES: web.AppKey[RateLimit] = web.AppKey("search phones", RateLimit)
"""Searches by phone, by the id of the terminal."""
RECHECK_AUTHORISATION: web.RequestKey[Callable[[web.Request], object]] = web.RequestKey("still may")
"""Raises what the caller of a request is refused by now; absent where nobody was asked who
they are. It is handed the request: one that held itself would be garbage to be looked for."""


def recheck_authorisation(request: web.Request) -> None:
    """A request was waited for: whoever was revoked meanwhile is refused, as by the next one."""
    if RECHECK_AUTHORISATION in request:
        request[RECHECK_AUTHORISATION](request)


@dataclass(frozen=True, slots=True)
class Principal:
    """`anybody` may open links, pages and files; the others show who they are.

    `needs` is the key's scope, or the role that the person's must include. Terminals are told
    their roles by the handlers of terminal_bridge.
    """

    kind: Literal["anybody", "key", "terminal", "staff"]
    needs: str | None = None


ANYBODY = Principal("anybody")
PRINCIPALS: web.AppKey[dict[tuple[str, str], Principal]] = web.AppKey("principals", dict)


_OWN_SITES = {"same-origin", "none"}


def is_from_our_page(request: web.Request, base: str) -> bool:
    """Whether nothing says that another site's page sent this request.

    A browser that tells Sec-Fetch-Site is believed; else its Origin must be that of `base`
    (the address guests are given) or the one it asked, and `null` is neither; without one it must
    carry no cookie.
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
    """`server.trusted_proxies` as networks."""
    return [ip_network(text, strict=False) for text in texts]


def peer_of(request: web.Request, proxies: Networks) -> str:
    """The caller's address, or the nearest one before our own proxies."""
    peer = request.remote or "unknown"
    if proxies and is_in(peer, proxies):
        # Some proxies add a line of their own below the one that the caller made up.
        lines = request.headers.getall("X-Forwarded-For", [])
        chain = [_address_in(part.strip()) for part in ",".join(lines).split(",")]
        for address in reversed([part for part in chain if part]):
            peer = address
            if not is_in(address, proxies):
                break
    return peer


def is_trusted(request: web.Request, proxies: Networks) -> bool:
    """Whether it came from one of our own proxies."""
    return is_in(request.remote or "", proxies)


def _address_in(forwarded: str) -> str:
    found = _WITH_PORT.fullmatch(forwarded)
    return forwarded if found is None else found[1] or found[2] or ""


def is_private(request: web.Request, proxies: Networks) -> bool:
    """Whether the request came over TLS, here or at a proxy of ours, or never left the machine."""
    if request.secure:
        return True
    remote = request.remote or ""
    if "X-Forwarded-Proto" in request.headers and is_in(remote, proxies):
        return claims_https(request)
    return is_loopback(remote)


def claims_https(request: web.Request) -> bool:
    """Whether a proxy says that it was asked over https: nobody's word, unless it is trusted."""
    said = request.headers.getall("X-Forwarded-Proto", [])
    return bool(said) and said[-1].rpartition(",")[2].strip() == "https"


@lru_cache(maxsize=1024)
def household_of(peer: str) -> str:
    """One caller's addresses as one: an IPv6 connection has a whole /64 of them."""
    try:
        address = ip_address(peer)
    except ValueError:
        return peer
    if address.version == 4:
        return peer
    if address.ipv4_mapped is not None:  # IPv4, as a socket for both shows it
        return str(address.ipv4_mapped)
    return str(ip_network((address, 64), strict=False))


@lru_cache(maxsize=1024)
def is_loopback(address: str) -> bool:
    """Whether it is an address of this machine that only this machine reaches."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def is_in(text: str, networks: Networks) -> bool:
    """Whether it is an address of one of these networks."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return any(address in network for network in networks)
