"""Under which names and addresses the box is reached: what its certificate has to say."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from socket import gethostname
from urllib.parse import urlsplit

import ifaddr

from appliance.alone import is_public
from appliance.settings import ServerSettings

Network = IPv4Network | IPv6Network

_LOOPBACK = ("127.0.0.0/8", "::1/128")
# A box that moves within the range it was made in keeps its authority.
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")


@dataclass(frozen=True, slots=True)
class Names:
    """DNS names in lower case, and addresses as text; both sorted."""

    dns: tuple[str, ...]
    addresses: tuple[str, ...]

    def cover(self, name: str) -> bool:
        """Whether an imported certificate of these names is shown to who asks for `name`.

        Never under `<slug>.local` and the like: those are the box's own, and its authority's.
        """
        name = name.lower()
        parent = name.partition(".")[2]
        if not parent or name.endswith(".local"):
            return False
        return name in self.dns or f"*.{parent}" in self.dns

    def ranges(self) -> list[Network]:
        """The networks in which these addresses may move: private ranges, else the address.

        Of a box that has none yet: every private range, for it will have one.
        """
        found = {ip_network(text) for text in _LOOPBACK}
        private = [ip_network(text) for text in _PRIVATE]
        if all(ip_address(text).is_loopback for text in self.addresses):
            found.update(private)
        for text in self.addresses:
            address = ip_address(text)
            if not address.is_loopback:
                around = [network for network in private if address in network]
                found.update(around or [ip_network(text)])
        return sorted(found, key=lambda network: (network.version, network))


def wanted_names(slug: str, server: ServerSettings, addresses: Iterable[str]) -> Names:
    """`<slug>.local`, this machine, what the settings name, loopback and `addresses`.

    Not the host of a public `app_url`: who comes by that does not know the box's authority.
    """
    machine = gethostname()
    given = ["localhost", f"{slug}.local", machine, *server.names]
    if "." not in machine:
        given.append(f"{machine}.local")
    if not is_public(server.app_url):
        given.append(urlsplit(server.app_url).hostname or "")
    dns = {name.lower().rstrip(".") for name in given}
    literal = {name for name in dns if _is_address(name)}
    return Names(
        tuple(sorted(name for name in dns - literal if _is_name(name))),
        tuple(sorted({"127.0.0.1", "::1", *literal, *addresses})),
    )


def own_addresses() -> list[str]:
    """The addresses of this machine that others may reach; none of a single link alone."""
    return sorted({text for text, _index in own_interfaces()})


def own_interfaces() -> list[tuple[str, int]]:
    """The same addresses, each with the index of its adapter: one plugged in again has another."""
    found = set()
    for adapter in ifaddr.get_adapters():
        for entry in adapter.ips:
            text = entry.ip if isinstance(entry.ip, str) else entry.ip[0]
            address = ip_address(text)
            if not (address.is_loopback or address.is_link_local or address.is_multicast):
                found.add((text, adapter.index or 0))
    return sorted(found)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_name(text: str) -> bool:
    """Whether a certificate can say it: other texts would spoil the whole certificate."""
    return text.isascii() and 1 <= len(text) <= 253 and not set(text) & set("_ */:[]")
