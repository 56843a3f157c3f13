"""How many connections the box holds at once, so that nobody can shut its door for the others."""

import resource
from collections import Counter
from collections.abc import Iterable
from ipaddress import ip_address, ip_network

from web.peer import household_of

_FILES_WANTED = 4096
_PER_ADDRESS = 200
_DEVICES_OF_A_NETWORK = 4


class ConnectionLimit:
    """Counts connections: at most `total`, and at most `per_address` from one device.

    With IPv6 a device may choose among the addresses of a /64, which a whole house may share
    too: together they have four times as many. A proxy speaks for many devices, so trusted ones
    and this machine itself have no limit of their own.
    """

    def __init__(
        self, total: int, trusted_proxies: Iterable[str] = (), per_address: int = _PER_ADDRESS
    ) -> None:
        self._total = total
        self._per_address = per_address
        self._proxies = [ip_network(text, strict=False) for text in trusted_proxies]
        self._held: Counter[str] = Counter()
        self._in_network: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Count one more from `address`; False when there are too many already."""
        if self._held.total() >= self._total:
            return False
        network = household_of(address)
        is_crowded = self._held[address] >= self._per_address or (
            self._in_network[network] >= self._per_address * _DEVICES_OF_A_NETWORK
        )
        if is_crowded and not self._speaks_for_many(address):
            return False
        self._held[address] += 1
        if network != address:
            self._in_network[network] += 1
        return True

    def leave(self, address: str) -> None:
        """One that had entered from `address` is gone."""
        for counted, name in ((self._held, address), (self._in_network, household_of(address))):
            if counted[name] > 1:
                counted[name] -= 1
            else:
                del counted[name]

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
