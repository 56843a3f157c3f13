"""Detect loopback and public hosts, this machine's addresses and its route, and read web pages."""

import asyncio
import fcntl
import socket
import ssl
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface, ip_network
from urllib.parse import urlsplit

_LOCAL_ENDINGS = (".local", ".lan", ".home.arpa", ".internal")


def is_loopback_host(host: str) -> bool:
    """Whether `host` is `localhost` or a loopback address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def serves_tls(host: str, tls_port: int) -> bool:
    """Whether the box serves https if it listens on `host`. On a loopback host, it never does."""
    return tls_port > 0 and not is_loopback_host(host)


def listens_at(host: str, address: str) -> bool:
    """Whether a server that listens on `host` may be reachable at the machine's `address`.

    A server that listens on an IPv4 address, including 0.0.0.0, is not reachable over IPv6.
    """
    return ":" in host or ":" not in address


def in_url(host: str) -> str:
    """Return `host` as written in a URL, i.e. with brackets around an IPv6 address."""
    return f"[{host}]" if ":" in host else host


def https_base(host: str, port: int) -> str:
    """Return the https URL of a host and port, without a trailing slash."""
    return f"https://{in_url(host)}" if port == 443 else f"https://{in_url(host)}:{port}"


def is_public(url: str) -> bool:
    """Whether the host name or address in `url` is outside the local network."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    try:
        return not ip_address(host).is_private
    except ValueError:
        return "." in host and not host.endswith(_LOCAL_ENDINGS)


_DNS_SECONDS = 3.0
_NOT_FOUND = {socket.EAI_NONAME, socket.EAI_NODATA}


async def host_exists(host: str) -> bool:
    """Whether DNS knows the host name. True if it does not answer within 3 s, or is not reached."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_DNS_SECONDS):
            await loop.getaddrinfo(host, None)
    except socket.gaierror as error:
        return error.errno not in _NOT_FOUND
    except UnicodeError:  # the name is not a valid host name
        return False
    except TimeoutError:
        return True
    return True


# Addresses outside the local network. They are reserved for documentation, so no machine uses them.
REMOTE_ADDRESSES = ("192.0.2.1", "2001:db8::1")


def has_way_out() -> bool:
    """Whether the kernel has a route out of the local network. Sends no packet."""
    return any(source_address(address) is not None for address in REMOTE_ADDRESSES)


def source_address(address: str) -> str | None:
    """Return this machine's address for packets to `address`, or None if there is no route.

    Connects a UDP socket, which sends no packet.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        return str(probe.getsockname()[0])
    return None


@dataclass(frozen=True, slots=True)
class Interface:
    """An address of this machine, on the network adapter `name`.

    An adapter that is unplugged and reconnected gets a new `index`. `is_broadcast` is false for a
    point-to-point link, such as a VPN or a modem.
    """

    name: str
    index: int
    network: IPv4Interface | IPv6Interface
    is_broadcast: bool = True

    @property
    def address(self) -> str:
        """The address as text."""
        return str(self.network.ip)

    @property
    def is_house(self) -> bool:
        """Whether other machines on the LAN may reach this address.

        False for adapters of containers, virtual machines, VPNs and modems, for links with only
        two ends (/30 to /32), and for the addresses of carriers (100.64.0.0/10).
        """
        if self.name.startswith(_VIRTUAL) or not self.is_broadcast:
            return False
        if self.network.version == 6:
            return True
        return self.network.network.prefixlen < _TWO_ENDS and self.network not in _CARRIER


_VIRTUAL = (
    "br-", "cali", "cni", "docker", "flannel", "hassio", "incusbr", "ipsec", "lxcbr", "lxdbr",
    "nordlynx", "podman", "ppp", "rmnet", "tailscale", "tap", "tun", "utun", "vboxnet", "veth",
    "virbr", "vmnet", "vnet", "wg", "wwan", "wwp", "zt",
)  # fmt: skip
_TWO_ENDS = 30
_CARRIER = ip_network("100.64.0.0/10")
_GET_FLAGS, _BROADCAST, _POINT_TO_POINT = 0x8913, 0x2, 0x10  # Linux, <linux/if.h>


def own_addresses() -> list[str]:
    """List this machine's IP addresses except loopback, link-local and multicast addresses."""
    return sorted({each.address for each in own_interfaces()})


def own_interfaces() -> list[Interface]:
    """List this machine's addresses, as in `own_addresses`, with their adapters."""
    import ifaddr  # noqa: PLC0415 - slow to import, and few commands need it

    found = []
    for adapter in ifaddr.get_adapters():
        is_broadcast = _is_broadcast(adapter.name)
        for entry in adapter.ips:
            text = entry.ip if isinstance(entry.ip, str) else entry.ip[0]
            each = ip_interface(f"{text}/{entry.network_prefix}")
            if not (each.is_loopback or each.is_link_local or each.is_multicast):
                found.append(Interface(adapter.name, adapter.index or 0, each, is_broadcast))
    return sorted(found, key=lambda each: each.address)


def _is_broadcast(adapter: str) -> bool:
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answered = fcntl.ioctl(probe, _GET_FLAGS, struct.pack("256s", adapter.encode()[:15]))
        (flags,) = struct.unpack_from("H", answered, 16)
        return bool(flags & _BROADCAST) and not flags & _POINT_TO_POINT
    return True  # unknown


def house_addresses(interfaces: Iterable[Interface]) -> list[str]:
    """Return this machine's IPv4 addresses for others on the LAN, private ones first."""
    found = [each.network.ip for each in interfaces if each.is_house and each.network.version == 4]
    return [str(each) for each in sorted(found, key=lambda each: (not each.is_private, each))]


def is_beside(address: str) -> bool:
    """Whether `address` belongs to another machine in a network of this machine.

    False for loopback and link-local addresses.
    """
    own = [each.network for each in own_interfaces()]
    found = ip_address(address)
    return any(found in each.network for each in own) and all(found != each.ip for each in own)


async def get_start(
    url: str, size: int, seconds: float, *, tls: ssl.SSLContext | bool, follows: bool = False
) -> tuple[int, bytes]:
    """Send a GET request. Return the status and the first `size` bytes of the body.

    `tls` is what aiohttp accepts as `ssl`. Redirects are followed only if `follows` is true.
    Raises TimeoutError after `seconds`, aiohttp.ClientError or OSError.
    """
    import aiohttp  # noqa: PLC0415 - slow to import, and most commands need none

    start = b""
    async with (
        asyncio.timeout(seconds),
        aiohttp.ClientSession() as session,
        session.get(url, ssl=tls, allow_redirects=follows) as response,
    ):
        async for block in response.content.iter_any():
            start += block
            if len(start) >= size:
                break
        return response.status, start[:size]
