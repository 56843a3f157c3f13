"""How many connections the box holds at once, so that nobody can shut its door for the others."""

import asyncio
import resource
from collections.abc import Iterable
from ipaddress import ip_address, ip_network
from typing import cast

from web.peer import household_of

_FILES_WANTED = 4096
_PER_ADDRESS = 200
_DEVICES_OF_A_NETWORK = 4


class ConnectionLimit:
    """Counts connections: at most `total`, and at most `per_address` from one address.

    With IPv6 the addresses of a /64 count as one, which may have four times as many: it may be one
    device or a whole building. A proxy speaks for many devices, so trusted ones and this machine
    itself have no limit of their own.

    When all places are taken, the address that holds the most of them loses its oldest one to
    whoever holds fewer: however many addresses somebody has, a newcomer gets in.
    """

    def __init__(
        self, total: int, trusted_proxies: Iterable[str] = (), per_address: int = _PER_ADDRESS
    ) -> None:
        self._total = total
        self._per_address = per_address
        self._proxies = [ip_network(text, strict=False) for text in trusted_proxies]
        self._open: dict[str, dict[asyncio.BaseTransport, None]] = {}  # by address, oldest first
        self._address_of: dict[asyncio.BaseTransport, str] = {}

    def enter(self, connection: asyncio.BaseTransport) -> bool:
        """Count a new connection; False, and it is closed, when there is no place for it."""
        peer = str((connection.get_extra_info("peername") or ["unknown"])[0])
        address = household_of(peer)
        held = len(self._open.get(address, ()))
        most = self._per_address * (_DEVICES_OF_A_NETWORK if ":" in address else 1)
        if (held >= most and not self._speaks_for_many(peer)) or not self._has_place(held):
            cast("asyncio.Transport", connection).abort()
            return False
        self._open.setdefault(address, {})[connection] = None
        self._address_of[connection] = address
        return True

    def leave(self, connection: asyncio.BaseTransport) -> None:
        """A connection is gone. One that was not counted, or not any more, changes nothing."""
        address = self._address_of.pop(connection, None)
        if address is not None:
            del self._open[address][connection]
            if not self._open[address]:
                del self._open[address]

    def _has_place(self, held: int) -> bool:
        """Whether there is a place for who holds so many, made by closing another's if need be."""
        if len(self._address_of) < self._total:
            return True
        most = max(self._open.values(), key=len, default={})
        if len(most) <= held:
            return False
        oldest = next(iter(most))
        self.leave(oldest)
        cast("asyncio.Transport", oldest).abort()
        return True

    def _speaks_for_many(self, address: str) -> bool:
        try:
            peer = ip_address(address)
        except ValueError:
            return False
        return peer.is_loopback or any(peer in network for network in self._proxies)


def affordable_connections() -> int:
    """Half of the files that the process may open, after asking for more of them.

    The other half is for the databases, for deliveries and for letters. Without a limit of
    our own the system's would be met in `accept`, which then fails, and says so, without end.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FILES_WANTED and soft < hard:
        soft = _FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, _FILES_WANTED)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(soft, _FILES_WANTED) // 2
