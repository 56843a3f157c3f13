"""Which addresses the box may send to: an explicit table, and the owner's exceptions.

`ipaddress.is_global` is not asked: it calls NAT64, 6to4 and mapped loopback addresses global.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from appliance.errors import Trouble

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network


class Reach(Enum):
    """What kind of place an address is."""

    PUBLIC = "public"
    PRIVATE = "private"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    NEVER = "never"


def _networks(*texts: str) -> tuple[IpNetwork, ...]:
    return tuple(ip_network(text) for text in texts)


# What the owner may open, by naming it (docs/decisions/urls-and-networks.md).
_OPENABLE = {
    Reach.PRIVATE: _networks(
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
        "100.64.0.0/10",      # carrier-grade NAT
        "fc00::/7",           # unique local
    ),
    Reach.LOOPBACK: _networks("127.0.0.0/8", "::1/128"),
    Reach.LINK_LOCAL: _networks("169.254.0.0/16", "fe80::/10"),
}  # fmt: skip

# What nobody opens: no receiver lives there, or another spelling hides a different address.
_NEVER = _networks(
    "0.0.0.0/8",              # this host
    "192.0.0.0/24",           # protocol assignments
    "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24",  # documentation
    "192.31.196.0/24", "192.175.48.0/24",  # AS112
    "192.52.193.0/24",        # multicast tunnelling
    "192.88.99.0/24",         # 6to4 relays
    "198.18.0.0/15",          # benchmarks
    "224.0.0.0/4",            # multicast
    "240.0.0.0/4",            # reserved, broadcast
    "2001::/23",              # Teredo, ORCHID and other protocol assignments
    "2001:db8::/32", "3fff::/20",  # documentation
    "2002::/16",              # 6to4: spells an IPv4 address
    "2620:4f:8000::/48",      # AS112
)  # fmt: skip
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_ISATAP = (0x00005EFE, 0x02005EFE)  # the interface identifier that spells an IPv4 address

_PORT_MAX = 65535
_WITH_PORT = re.compile(r"(?:\[(?P<six>.+)\]|(?P<plain>[^:]+))(?::(?P<port>[0-9]{1,9}))?")
_PORTS_FOR_ANYBODY = 1024  # below them live other protocols


@lru_cache(maxsize=256)  # asked at every attempt, about the same few addresses
def reach_of(address: IpAddress) -> Reach:
    """Where `address` leads; NEVER for everything special that nobody may open."""
    for reach, networks in _OPENABLE.items():
        if any(address in network for network in networks):
            return reach
    if any(address in network for network in _NEVER):
        return Reach.NEVER
    if isinstance(address, IPv6Address) and (
        address not in _GLOBAL_UNICAST or int(address) >> 32 & 0xFFFF_FFFF in _ISATAP
    ):
        return Reach.NEVER
    return Reach.PUBLIC


@dataclass(frozen=True, slots=True)
class AllowEntry:
    """One entry of `webhooks.allow_networks`; `port` None is any port."""

    network: IpNetwork
    port: int | None

    def covers(self, address: IpAddress, port: int) -> bool:
        """Whether this entry names `address` and `port`."""
        return address in self.network and self.port in {None, port}


def parse_allow_entry(text: str) -> AllowEntry:
    """`10.0.0.5`, `10.0.0.0/8`, `127.0.0.1:9000`, `[fd00::1]:9000`; Trouble otherwise.

    A network has to lie inside one private, loopback or link-local range: a wider one
    would open what it does not name.
    """
    name, port = _split_port(text.strip())
    try:
        network = ip_network(name)
    except ValueError as error:
        raise Trouble(
            f"webhooks.allow_networks has {text!r} ({error}): "
            "write an address or a network, each with an optional :port"
        ) from None
    alone = network.num_addresses == 1
    if alone and reach_of(network.network_address) is not Reach.NEVER:
        return AllowEntry(network, port)
    first, length = network.network_address, network.prefixlen
    ranges = [outer for group in _OPENABLE.values() for outer in group]
    if not any(first in outer and length >= outer.prefixlen for outer in ranges):
        raise Trouble(
            f"webhooks.allow_networks has {text!r}: it names no private network; "
            f"write one inside {', '.join(map(str, ranges))}"
        )
    return AllowEntry(network, port)


def _split_port(text: str) -> tuple[str, int | None]:
    """The network and its port; the whole text when it is written in another way."""
    found = _WITH_PORT.fullmatch(text)
    if found is None or not 1 <= int(found["port"] or 1) <= _PORT_MAX:
        return text, None
    return found["six"] or found["plain"], int(found["port"]) if found["port"] else None


class EgressPolicy:
    """What may be connected to (docs/decisions/urls-and-networks.md)."""

    def __init__(self, allowed: Iterable[str], is_own_address: Callable[[IpAddress], bool]) -> None:
        """`allowed` is `webhooks.allow_networks`; Trouble names an entry that is wrong."""
        self._entries: Sequence[AllowEntry] = [parse_allow_entry(text) for text in allowed]
        self._is_own_address = is_own_address

    def permits(self, address: IpAddress, port: int) -> bool:
        """Whether a delivery may be sent to exactly this address and port."""
        reach = reach_of(address)
        if reach is Reach.NEVER:
            return False
        naming = [entry for entry in self._entries if entry.covers(address, port)]
        if reach is not Reach.LOOPBACK and self._is_own_address(address):
            # The box's own address is a range of one: only its own name opens it.
            return any(entry.network.num_addresses == 1 for entry in naming)
        return reach is Reach.PUBLIC or bool(naming)

    def permits_port(self, port: int, address: IpAddress | None = None, *, secure: bool) -> bool:
        """Whether receivers may listen there: 443, 80 for plain http, 1024 and up, or named.

        Who names a port names it for a place: with `address` it has to be named for that.
        """
        is_usual = port >= _PORTS_FOR_ANYBODY or port == (443 if secure else 80)
        return is_usual or any(
            entry.port == port and (address is None or address in entry.network)
            for entry in self._entries
        )
