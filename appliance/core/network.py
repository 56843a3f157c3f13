"""Which hosts are this machine, the venue's network or the internet; and routes to the internet."""

import socket
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

_LOCAL_ENDINGS = (".local", ".lan", ".home.arpa", ".internal")


def is_loopback_host(host: str) -> bool:
    """Whether `host` is this machine's name for itself, or an address that no other has."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def serves_tls(host: str, tls_port: int) -> bool:
    """Whether https is served: never by a box that only this machine can reach."""
    return tls_port > 0 and not is_loopback_host(host)


def https_base(host: str, port: int) -> str:
    """The https URL of a host and port, without a slash at its end."""
    shown = f"[{host}]" if ":" in host else host
    return f"https://{shown}" if port == 443 else f"https://{shown}:{port}"


def is_public(url: str) -> bool:
    """Whether the host of `url` lies outside the venue's own network, as far as its name tells."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    try:
        return not ip_address(host).is_private
    except ValueError:
        return "." in host and not host.endswith(_LOCAL_ENDINGS)


# Addresses for documentation: nobody has them, and asking for the way sends nothing.
_ANYWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


class Network(Protocol):
    """The machine's own network."""

    def has_way_out(self) -> bool:
        """Whether any route leads out of the venue's network, as far as the machine knows."""
        ...


class SystemNetwork:
    """The kernel's routes."""

    def has_way_out(self) -> bool:
        """As promised: the kernel is asked for a route, and no packet leaves."""
        return any(_has_route(family, address) for family, address in _ANYWHERE)


def _has_route(family: int, address: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asker:
            asker.connect((address, 9))
    except OSError:
        return False
    return True
