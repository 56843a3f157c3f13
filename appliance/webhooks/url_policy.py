"""The URL policy decides which URLs and addresses webhooks may be sent to (SSRF protection).

`ipaddress.is_global` is not used, because it is True for NAT64, 6to4 and mapped loopback addresses,
which may lead to private IPv4 addresses.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from msgspec import Struct

from appliance.core.errors import (
    InvalidWebhookUrl,
    OperatorError,
    Rule,
    WebhookNameClosed,
    WebhookUrlClosed,
)
from appliance.core.network import in_url, source_address
from appliance.core.settings import WebhookSettings
from appliance.scheduler import run_in_daemon_thread

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network


class Reach(Enum):
    """The class of an IP address. Webhooks are never sent to addresses of the class NEVER."""

    PUBLIC = "public"
    PRIVATE = "private"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    NEVER = "never"


def _networks(*texts: str) -> tuple[IpNetwork, ...]:
    return tuple(ip_network(text) for text in texts)


# Ranges that the owner may allow in the settings (docs/decisions/urls-and-networks.md).
_OPENABLE = {
    Reach.PRIVATE: _networks(
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
        "100.64.0.0/10",      # carrier-grade NAT
        "fc00::/7",           # unique local
    ),
    Reach.LOOPBACK: _networks("127.0.0.0/8", "::1/128"),
    Reach.LINK_LOCAL: _networks("169.254.0.0/16", "fe80::/10"),
}  # fmt: skip

# Ranges that cannot be allowed, because they contain no receivers or embed another address.
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
    "2002::/16",              # 6to4: embeds an IPv4 address
    "2620:4f:8000::/48",      # AS112
)  # fmt: skip
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_ISATAP = (0x00005EFE, 0x02005EFE)  # interface identifiers that embed an IPv4 address

_WITH_PORT = re.compile(r"(?:\[(?P<six>.+)\]|(?P<plain>[^:]+))(?::(?P<port>[0-9]{1,9}))?")
_FIRST_COMMON_PORT = 1024  # lower ports are assigned to other protocols


@lru_cache(maxsize=256)  # most attempts are sent to the same few addresses
def reach_of(address: IpAddress) -> Reach:
    """Classify `address`. Return NEVER for special ranges that cannot be allowed."""
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
    """One entry of `webhooks.allow_networks`. If `port` is None, any port is allowed."""

    network: IpNetwork
    port: int | None


def parse_allow_entry(text: str) -> AllowEntry:
    """Parse `10.0.0.5`, `10.0.0.0/8`, `127.0.0.1:9000` or `[fd00::1]:9000`.

    Raises OperatorError for any other format, and for a network that is not inside one private,
    loopback or link-local range.
    """
    name, port = _split_port(text.strip())
    try:
        network = ip_network(name)
    except ValueError as error:
        raise OperatorError(
            f"webhooks.allow_networks contains {text!r}, which is invalid ({error}). Specify an "
            "address or a network, with an optional :port."
        ) from None
    first, length = network.network_address, network.prefixlen
    if network.num_addresses == 1 and reach_of(first) is not Reach.NEVER:
        return AllowEntry(network, port)
    ranges = [outer for group in _OPENABLE.values() for outer in group]
    if not any(first in outer and length >= outer.prefixlen for outer in ranges):
        raise OperatorError(
            f"webhooks.allow_networks contains {text!r}, which is not a private network. Specify "
            f"a network inside {', '.join(map(str, ranges))}."
        )
    return AllowEntry(network, port)


def _split_port(text: str) -> tuple[str, int | None]:
    """Split `text` into network and port. Return `text` and None if it has any other format."""
    found = _WITH_PORT.fullmatch(text)
    if found is None or not 1 <= int(found["port"] or 1) <= 65535:
        return text, None
    return found["six"] or found["plain"], int(found["port"]) if found["port"] else None


class EgressPolicy:
    """Decides which addresses and ports are permitted (docs/decisions/urls-and-networks.md)."""

    def __init__(self, allowed: Iterable[str], is_own_address: Callable[[IpAddress], bool]) -> None:
        """`allowed` is `webhooks.allow_networks`. Raises OperatorError for an invalid entry."""
        self._entries: Sequence[AllowEntry] = [parse_allow_entry(text) for text in allowed]
        self._is_own_address = is_own_address

    def permits(self, address: IpAddress, port: int) -> bool:
        """Whether webhooks may be sent to this address and port."""
        reach = reach_of(address)
        if reach is Reach.NEVER:
            return False
        entries = [
            entry
            for entry in self._entries
            if address in entry.network and entry.port in {None, port}
        ]
        if reach is not Reach.LOOPBACK and self._is_own_address(address):
            # The box's own address needs an entry for exactly that address.
            return any(entry.network.num_addresses == 1 for entry in entries)
        return reach is Reach.PUBLIC or bool(entries)

    def permits_port(self, port: int, address: IpAddress | None = None, *, secure: bool) -> bool:
        """Whether the port is the scheme's default, at least 1024, or listed in an allowed entry.

        If `address` is given, the entry that lists the port must also include the address.
        """
        is_common = port >= _FIRST_COMMON_PORT or port == _default_port(secure=secure)
        return is_common or any(
            entry.port == port and (address is None or address in entry.network)
            for entry in self._entries
        )


_URL_MAX = 2048
_PRINTABLE = re.compile(r"[!-\[\]-~]+")  # visible ASCII except the backslash
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class TargetUrl(Struct, frozen=True):
    """A parsed URL. `target` is the path with the query.

    `address` is set if the host is an IP address.
    """

    secure: bool
    host: str
    port: int
    target: str
    address: IpAddress | None

    @property
    def authority(self) -> str:
        """The value of the Host header, with the port unless it is the default."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == _default_port(secure=self.secure) else f"{host}:{self.port}"


def parse_target_url(url: object, *, allow_http: bool) -> TargetUrl:
    """Parse a receiver's URL. Raises InvalidWebhookUrl with the rule that the URL breaks.

    Does not check whether the address and port are permitted; EgressGuard does.
    """
    if isinstance(url, str) and len(url) > _URL_MAX:
        raise _refused("at most 2048 characters.")
    if not (isinstance(url, str) and _PRINTABLE.fullmatch(url)):
        raise _refused("expected an absolute URL, https://…, in ASCII.")
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise _refused("the host name or IP address is not in its usual form.") from None
    try:
        port = parts.port
    except ValueError:
        raise _refused("the port must be a number from 1 to 65535.") from None
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise _refused("expected an absolute URL, https://…, in ASCII.")
    if "@" in parts.netloc or "#" in url:
        raise _refused("it must not contain a user name, a password or a #fragment.")
    if parts.scheme == "http" and not allow_http:
        raise _refused("https is required, unless the venue sets webhooks.allow_http = true.")
    secure = parts.scheme == "https"
    port = _default_port(secure=secure) if port is None else port
    name, address = _parse_host(host or "", parts.netloc)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return TargetUrl(secure, name, port, target, address)


def _forbidden(receiver: TargetUrl, address: IpAddress | None) -> InvalidWebhookUrl:
    """Return the error for a forbidden receiver.

    If the owner can allow the receiver, the error names the entry to add to the settings.

    `address` is the forbidden address, if known. The error never contains an address that a name
    resolved to, so that partners cannot explore the venue's network.
    """
    if address is not None and reach_of(address) is Reach.NEVER:
        return _refused("this address is reserved: no setting allows it.")
    usual = _default_port(secure=receiver.secure)
    if receiver.address is None:
        return WebhookNameClosed(field="url", usual=usual, port=receiver.port)
    entry = f'"{in_url(str(receiver.address))}:{receiver.port}"'
    return WebhookUrlClosed(field="url", usual=usual, entry=entry)


def _parse_host(host: str, netloc: str) -> tuple[str, IpAddress | None]:
    """Return the host in canonical form, and as an address if it is an IP address.

    A name whose last label is a number is an IPv4 address, which can be written in several ways
    (127.1, 0x7f000001, 2130706433). Only four decimal numbers (127.0.0.1) are accepted.
    """
    try:
        if "[" in netloc:
            rest = netloc.rpartition("]")[2]
            if "%" in host or not netloc.startswith("[") or rest[:1] not in {"", ":"}:
                raise _refused("the host name or IP address is not in its usual form.")
            address = IPv6Address(host)
            return str(address), address
        name = host.removesuffix(".")
        labels = name.split(".")
        if _NUMBER.fullmatch(labels[-1]):
            return host, IPv4Address(host)
    except ValueError:
        raise _refused("the host name or IP address is not in its usual form.") from None
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _refused("the host name or IP address is not in its usual form.")
    return name, None


def _default_port(*, secure: bool) -> int:
    return 443 if secure else 80


def _refused(text: str) -> InvalidWebhookUrl:
    return InvalidWebhookUrl(field="url", rule=Rule(text))


DNS_SECONDS = 3.0
_LOOKUPS_AT_ONCE = 10  # one for each endpoint: two environments with up to five each
_NEW_LOOKUPS_AT_ONCE = 6

# Returns a host name's addresses. Raises socket.gaierror if the lookup fails. Has no time limit.
Resolve = Callable[[str], Awaitable[Sequence[IpAddress]]]


class Blocked(Exception):
    """Raised if the URL policy forbids the receiver. No connection was attempted."""

    def __init__(self, address: IpAddress | None) -> None:
        """`address` is the forbidden address, if one was checked."""
        super().__init__()
        self.address = address


class EgressGuard:
    """Checks receivers against the policy.

    Callers must connect only to the addresses that `addresses` returns.
    """

    def __init__(
        self, policy: EgressPolicy, resolve: Resolve, resolve_new: Resolve | None = None
    ) -> None:
        """`resolve` looks up hosts for deliveries, and `resolve_new` those of new endpoints.

        They are separate, so that slow lookups for new endpoints do not delay deliveries.
        """
        self._policy = policy
        self._resolve = resolve
        self._resolve_new = resolve_new or resolve

    async def check(self, url: object, *, allow_http: bool) -> TargetUrl:
        """Check a URL before it is registered, and return the parsed URL.

        Accepts a name that does not resolve, because the box may be offline. Raises
        InvalidWebhookUrl if the URL is invalid or not permitted.
        """
        receiver = parse_target_url(url, allow_http=allow_http)
        try:
            await self.addresses(receiver, self._resolve_new)
        except Blocked as blocked:
            raise _forbidden(receiver, blocked.address) from None
        except (OSError, TimeoutError):
            pass
        return receiver

    async def addresses(
        self, receiver: TargetUrl, resolve: Resolve | None = None
    ) -> Sequence[IpAddress]:
        """Return all addresses of `receiver`.

        Raises Blocked if the port or any address is not permitted, OSError if the DNS lookup fails,
        and TimeoutError if it takes more than 3 s.
        """
        policy, port, secure = self._policy, receiver.port, receiver.secure
        if not policy.permits_port(port, secure=secure):
            raise Blocked(receiver.address)
        if receiver.address is not None:
            found: Sequence[IpAddress] = [receiver.address]
        else:
            async with asyncio.timeout(DNS_SECONDS):
                found = await (resolve or self._resolve)(receiver.host)
        for address in found:
            may_use_port = policy.permits_port(port, address, secure=secure)
            if not (may_use_port and policy.permits(address, port)):
                raise Blocked(address)
        if not found:
            raise Blocked(None)
        return found


class SystemResolver:
    """The system resolver. Each lookup runs in its own daemon thread.

    getaddrinfo cannot be interrupted. With daemon threads, a name server that does not respond
    blocks neither the database nor the process exit. Concurrent lookups of one host share a thread.
    """

    def __init__(self, at_once: int = _LOOKUPS_AT_ONCE) -> None:
        self._at_once = at_once
        self._under_way: dict[str, asyncio.Future[Sequence[IpAddress] | OSError]] = {}

    async def __call__(self, host: str) -> Sequence[IpAddress]:
        """Return the addresses of `host` in the system's order.

        Raises socket.gaierror if the lookup fails.
        """
        if host not in self._under_way:
            if len(self._under_way) >= self._at_once:
                raise socket.gaierror(socket.EAI_AGAIN, "too many lookups at once")
            lookup = asyncio.ensure_future(run_in_daemon_thread(partial(_look_up, host)))
            lookup.add_done_callback(lambda _: self._under_way.pop(host))
            self._under_way[host] = lookup
        found = await asyncio.shield(self._under_way[host])
        if isinstance(found, OSError):
            raise found.with_traceback(None)
        return found


def _look_up(host: str) -> Sequence[IpAddress] | OSError:
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return [ip_address(row[4][0]) for row in rows]
    except (OSError, UnicodeError, ValueError) as error:
        return error if isinstance(error, OSError) else socket.gaierror(str(error))


def is_own_address(address: IpAddress) -> bool:
    """Whether this machine has the address, or a public IPv6 address in the same /64 network.

    When sending to such an address, the kernel picks a source address that is the same or in the
    same /64 network. That network also contains the venue's router and printers, which the router
    protects from the internet but not from this machine.
    """
    source = source_address(str(address))
    is_public_six = address.version == 6 and reach_of(address) is Reach.PUBLIC
    network = ip_network((address, 64 if is_public_six else address.max_prefixlen), strict=False)
    return source is not None and ip_address(source) in network


def make_guard(settings: WebhookSettings) -> EgressGuard:
    """Create the egress guard. Raises OperatorError if `webhooks.allow_networks` is invalid."""
    policy = EgressPolicy(settings.allow_networks, is_own_address)
    return EgressGuard(policy, SystemResolver(), SystemResolver(_NEW_LOOKUPS_AT_ONCE))
