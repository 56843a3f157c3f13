"""Under which names the box answers (reliability.md S14).

A page of a stranger can make its own name resolve to the box's address and then read what the
box answers to the visitor's browser. It cannot do so with a bare address, nor with our names.
"""

from collections.abc import Callable
from ipaddress import ip_address
from socket import gethostname
from urllib.parse import urlsplit

from aiohttp import web

_REMEMBERED = 200


class Hosts:
    """Judges the Host header. Addresses, `localhost` and the box's own names are fine."""

    def __init__(
        self, addresses: tuple[str, ...], names: tuple[str, ...], slug: Callable[[], str]
    ) -> None:
        """`addresses` are our URLs; `slug` tells the venue's: the box is `<slug>.local`."""
        own = {(urlsplit(address).hostname or "").lower() for address in addresses}
        machine = gethostname().lower()
        self._names = {"localhost", machine, f"{machine}.local", *own}
        self._names |= {name.lower() for name in names}
        self._names.discard("")
        self._slug = slug
        self._allowed: set[str] = set()

    def allows(self, host: str) -> bool:
        """Whether a request for `host` (with or without a port) is answered."""
        if host in self._allowed:
            return True
        if not self._is_ours(host):
            return False
        if len(self._allowed) < _REMEMBERED:
            self._allowed.add(host)
        return True

    def _is_ours(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:  # a bracket that nobody closed
            return False
        try:
            ip_address(name)
        except ValueError:
            return name in self._names or name == f"{self._slug().lower()}.local"
        return True


HOSTS = web.AppKey("hosts", Hosts)
