"""The client's address and scheme; only trusted proxies count (docs/security.md, S20)."""

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from aiohttp import web

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
