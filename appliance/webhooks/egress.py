"""The egress guard: checks a receiver when it is registered, and again at each connection."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv6Address, ip_address

from appliance.settings import WebhookSettings
from appliance.webhooks.addresses import EgressPolicy, IpAddress
from appliance.webhooks.receiver import Receiver, forbidden, parse_receiver

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

    async def check(self, url: object, *, allow_http: bool) -> Receiver:
        """The receiver of a `url` that is to be registered, or InvalidWebhookUrl.

        A name that does not resolve passes: the box may be offline just now.
        """
        receiver = parse_receiver(url, allow_http=allow_http)
        try:
            await self._permitted(receiver, self._resolve_new)
        except Blocked as blocked:
            raise forbidden(receiver, blocked.address) from None
        except (OSError, TimeoutError):
            pass
        return receiver

    async def addresses(self, receiver: Receiver) -> Sequence[IpAddress]:
        """Every address of `receiver`, each of them permitted.

        Raises Blocked when only one is not, OSError or TimeoutError (3 s) from the resolver.
        """
        return await self._permitted(receiver, self._resolve)

    async def _permitted(self, receiver: Receiver, resolve: Resolve) -> Sequence[IpAddress]:
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
    """The guard of this machine; Trouble when `webhooks.allow_networks` is wrong."""
    policy = EgressPolicy(settings.allow_networks, is_own_address)
    return EgressGuard(policy, SystemResolver(), SystemResolver(_NEW_LOOKUPS_AT_ONCE))
