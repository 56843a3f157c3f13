"""Which Host names the box answers (docs/security.md, S14).

Another site can make its own name resolve to the box's address and then read the box's answers in
the visitor's browser (DNS rebinding). It cannot do so with a bare address, nor with our names.
"""

import re
from collections.abc import Callable
from ipaddress import ip_address
from socket import gethostname
from urllib.parse import urlsplit

from aiohttp import web

_HOST = re.compile(r"(?:([a-z0-9._-]+)|\[([0-9a-f:.]+)\])(?::\d{1,5})?", re.ASCII | re.IGNORECASE)


class Hosts:
    """Checks the Host header. Allows addresses, `localhost` and the box's own names."""

    def __init__(
        self, addresses: tuple[str, ...], names: tuple[str, ...], slug: Callable[[], str]
    ) -> None:
        """`addresses` are our URLs; `slug` returns the venue's: the box is `<slug>.local`."""
        own = {(urlsplit(address).hostname or "").lower() for address in addresses}
        machine = gethostname().lower()
        self._names = {"localhost", machine, f"{machine}.local", *own}
        self._names |= {name.lower() for name in names}
        self._names.discard("")
        self._slug = slug

    def allows(self, host: str) -> bool:
        """Return whether a request for `host` is answered.

        `host` is a name or address with an optional port: no user, zone or path (RFC 9110, 7.2).
        """
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = (found[1] or found[2]).lower().removesuffix(".")
        try:
            return ip_address(name).version == (4 if found[1] else 6)
        except ValueError:
            ours = name in self._names or name == f"{self._slug().lower()}.local"
            return found[1] is not None and ours


HOSTS = web.AppKey("hosts", Hosts)
