"""The URL policy (SSRF): which URLs and addresses webhooks may go to."""

import asyncio
import contextlib
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from appliance.core.errors import RULES, InvalidWebhookUrl, OperatorError, WebhookUrlClosed
from appliance.core.settings import WebhookSettings

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
    """`10.0.0.5`, `10.0.0.0/8`, `127.0.0.1:9000`, `[fd00::1]:9000`; OperatorError otherwise.

    A network has to lie inside one private, loopback or link-local range: a wider one
    would open what it does not name.
    """
    name, port = _split_port(text.strip())
    try:
        network = ip_network(name)
    except ValueError as error:
        raise OperatorError(
            f"webhooks.allow_networks has {text!r} ({error}): "
            "write an address or a network, each with an optional :port"
        ) from None
    alone = network.num_addresses == 1
    if alone and reach_of(network.network_address) is not Reach.NEVER:
        return AllowEntry(network, port)
    first, length = network.network_address, network.prefixlen
    ranges = [outer for group in _OPENABLE.values() for outer in group]
    if not any(first in outer and length >= outer.prefixlen for outer in ranges):
        raise OperatorError(
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
        """`allowed` is `webhooks.allow_networks`; OperatorError names an entry that is wrong."""
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


URL_MAX = 2048
_NAME_MAX = 253
_PRINTABLE = re.compile(r"[!-\[\]-~]+")  # visible ASCII without the backslash
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class TargetUrl:
    """A URL taken apart. `address` is set when the host is an IP address."""

    secure: bool
    host: str
    port: int
    target: str
    address: IpAddress | None

    @property
    def authority(self) -> str:
        """The Host header: the port only when it is not the usual one."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == _usual_port(secure=self.secure) else f"{host}:{self.port}"


def parse_target_url(url: object, *, allow_http: bool) -> TargetUrl:
    """The receiver that `url` names; InvalidWebhookUrl says which rule it breaks.

    Knows nothing of which addresses and ports are permitted: that is the guard's.
    """
    if isinstance(url, str) and len(url) > URL_MAX:
        raise _refused("url_length")
    if not (isinstance(url, str) and _PRINTABLE.fullmatch(url)):
        raise _refused("url_absolute")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _refused("url_host") from None
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise _refused("url_absolute")
    if "@" in parts.netloc or "#" in url:
        raise _refused("url_user_info")
    if parts.scheme == "http" and not allow_http:
        raise _refused("url_https")
    secure = parts.scheme == "https"
    usual = _usual_port(secure=secure)
    name, address = _parse_host(host or "", parts.netloc)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return TargetUrl(secure, name, usual if port is None else port, target, address)


def forbidden(receiver: TargetUrl, address: IpAddress | None) -> InvalidWebhookUrl:
    """The refusal of a receiver that may not be reached, and what would open it.

    `address` is the one at fault, where it is known. The one that a name leads to is not told:
    names in the venue's network are not a partner's to explore.
    """
    if address is not None and reach_of(address) is Reach.NEVER:
        return _refused("url_reserved")
    host = "IP" if receiver.address is None else str(receiver.address)
    shown = f"[{host}]" if ":" in host else host
    return WebhookUrlClosed(
        field="url", usual=_usual_port(secure=receiver.secure), entry=f'"{shown}:{receiver.port}"'
    )


def _parse_host(host: str, netloc: str) -> tuple[str, IpAddress | None]:
    """The host in its one spelling, and its address when it is one.

    A name whose last label is a number is an IPv4 address in some notation (127.1,
    0x7f000001, 2130706433): only the usual four decimal numbers are taken.
    """
    try:
        if "[" in netloc:
            behind = netloc.rpartition("]")[2]
            if "%" in host or not netloc.startswith("[") or behind[:1] not in {"", ":"}:
                raise _refused("url_host")
            address = IPv6Address(host)
            return str(address), address
        name = host.removesuffix(".")
        labels = name.split(".")
        if _NUMBER.fullmatch(labels[-1]):
            return host, IPv4Address(host)
    except ValueError:
        raise _refused("url_host") from None
    if len(name) > _NAME_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise _refused("url_host")
    return name, None


def _usual_port(*, secure: bool) -> int:
    return 443 if secure else 80


def _refused(rule: str) -> InvalidWebhookUrl:
    french, english = RULES[rule]
    return InvalidWebhookUrl(field="url", rule_fr=french, rule=english)


DNS_SECONDS = 3.0
_LOOKUPS_AT_ONCE = 10  # both environments have five endpoints: none is refused
_NEW_LOOKUPS_AT_ONCE = 6

# The addresses of a host name. Raises socket.gaierror; may take as long as it likes.
Resolve = Callable[[str], Awaitable[Sequence[IpAddress]]]


class Blocked(Exception):
    """The guard forbids this receiver: nothing was sent, no connection was tried."""

    def __init__(self, address: IpAddress | None) -> None:
        """`address` is the one at fault, where one was looked at."""
        super().__init__()
        self.address = address


class EgressGuard:
    """Says where a receiver may be reached. The addresses it returns are the ones to dial."""

    def __init__(
        self, policy: EgressPolicy, resolve: Resolve, resolve_new: Resolve | None = None
    ) -> None:
        """`resolve_new` looks up what is to be registered, so that it delays no delivery."""
        self._policy = policy
        self._resolve = resolve
        self._resolve_new = resolve_new or resolve

    async def check(self, url: object, *, allow_http: bool) -> TargetUrl:
        """The receiver of a `url` that is to be registered, or InvalidWebhookUrl.

        A name that does not resolve passes: the box may be offline just now.
        """
        receiver = parse_target_url(url, allow_http=allow_http)
        try:
            await self._permitted(receiver, self._resolve_new)
        except Blocked as blocked:
            raise forbidden(receiver, blocked.address) from None
        except (OSError, TimeoutError):
            pass
        return receiver

    async def addresses(self, receiver: TargetUrl) -> Sequence[IpAddress]:
        """Every address of `receiver`, each of them permitted.

        Raises Blocked when only one is not, OSError or TimeoutError (3 s) from the resolver.
        """
        return await self._permitted(receiver, self._resolve)

    async def _permitted(self, receiver: TargetUrl, resolve: Resolve) -> Sequence[IpAddress]:
        policy, port, secure = self._policy, receiver.port, receiver.secure
        if not policy.permits_port(port, secure=secure):
            raise Blocked(receiver.address)
        if receiver.address is not None:
            found: Sequence[IpAddress] = [receiver.address]
        else:
            async with asyncio.timeout(DNS_SECONDS):
                found = await resolve(receiver.host)
        for address in found:
            is_usual = policy.permits_port(port, address, secure=secure)
            if not (is_usual and policy.permits(address, port)):
                raise Blocked(address)
        if not found:
            raise Blocked(None)
        return found


class SystemResolver:
    """The machine's own name lookups, each on a thread that nothing else waits for.

    getaddrinfo cannot be interrupted: its threads are daemons, so that a name server that never
    answers holds up neither the store nor the end of the process. A host has one lookup at a
    time, which everybody who asks for it joins.
    """

    def __init__(self, at_once: int = _LOOKUPS_AT_ONCE) -> None:
        self._at_once = at_once
        self._under_way: dict[str, asyncio.Future[Sequence[IpAddress] | OSError]] = {}

    async def __call__(self, host: str) -> Sequence[IpAddress]:
        """The addresses of `host`, in the system's order of preference."""
        if host not in self._under_way:
            if len(self._under_way) >= self._at_once:
                raise socket.gaierror(socket.EAI_AGAIN, "too many lookups at once")
            loop = asyncio.get_running_loop()
            self._under_way[host] = loop.create_future()
            thread = threading.Thread(target=self._look_up, args=(loop, host), daemon=True)
            thread.start()
        found = await asyncio.shield(self._under_way[host])
        if isinstance(found, OSError):
            raise found.with_traceback(None)
        return found

    def _look_up(self, loop: asyncio.AbstractEventLoop, host: str) -> None:
        found: list[IpAddress] | OSError
        try:
            rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            found = [ip_address(row[4][0]) for row in rows]
        except (OSError, UnicodeError, ValueError) as error:
            found = error if isinstance(error, OSError) else socket.gaierror(str(error))
        with contextlib.suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(lambda: self._under_way.pop(host).set_result(found))


def is_own_address(address: IpAddress) -> bool:
    """Whether the machine itself has this address, whatever its interfaces are named.

    The kernel sends to its own address from that same address. No packet leaves.
    """
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(address), 9))
        except OSError:
            return False
        return ip_address(probe.getsockname()[0]) == address


def make_guard(settings: WebhookSettings) -> EgressGuard:
    """The guard of this machine; OperatorError when `webhooks.allow_networks` is wrong."""
    policy = EgressPolicy(settings.allow_networks, is_own_address)
    return EgressGuard(policy, SystemResolver(), SystemResolver(_NEW_LOOKUPS_AT_ONCE))
