"""What the dispatcher needs from outside; tests pass their own."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from appliance.clock import Synchronised, kernel_is_synchronised
from appliance.clock_signals import SystemUptime, Uptime, WatchClockSteps, watch_clock_steps
from appliance.core.network import Network, SystemNetwork
from appliance.core.settings import WebhookSettings
from appliance.webhooks.client import (
    Budgets,
    Client,
    Connect,
    OwnAuthority,
    PinnedCertificate,
    SystemTrust,
    Trust,
    connect_directly,
)
from appliance.webhooks.endpoints import Endpoint
from appliance.webhooks.url_policy import (
    EgressGuard,
    EgressPolicy,
    IpAddress,
    SystemResolver,
    TargetUrl,
    is_own_address,
    make_guard,
)

_HTTPS = 443


class Inside:
    """The URLs that this process answers itself, and how it is reached without a network.

    The test environment's echo receiver is one: reached by a pair of sockets, never by an
    address. So the egress guard has no exception: it still refuses loopback to everybody.
    """

    def __init__(self, names: Callable[[str], bool], connect: Connect) -> None:
        """`names` knows a URL of ours; `connect` is called with no address at all."""
        self._connect = connect
        self.names = names

    def make_client(self, receiver: TargetUrl, trust: Trust, budgets: Budgets) -> Client:
        """A client that can reach nothing but what is inside."""
        # No TLS on a pair of sockets; the Host header stays what the URL says.
        port = 80 if receiver.port == _HTTPS else receiver.port
        plain = replace(receiver, secure=False, port=port)
        nowhere = _Nowhere(EgressPolicy((), is_own_address), SystemResolver())
        client = Client(plain, nowhere, self._connect, trust, budgets)
        client.addresses = ()
        return client


class _Nowhere(EgressGuard):
    """A guard that looks nothing up and permits no address."""

    async def addresses(self, receiver: TargetUrl) -> Sequence[IpAddress]:  # noqa: ARG002 - as above
        """None: the connector needs none."""
        return ()


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Guard and connector, certificates to trust, time since boot, chance, patience.

    And what the machine itself knows of its network, and of its clock.

    `inside` has the receivers that are part of this process, in the test environment alone.
    """

    guard: EgressGuard
    trust: Trust
    uptime: Uptime
    connect: Connect = connect_directly
    draw: Callable[[], float] = random.random
    budgets: Budgets = field(default_factory=Budgets)
    inside: Inside | None = None
    network: Network = field(default_factory=SystemNetwork)
    synchronised: Synchronised = kernel_is_synchronised
    watch_clock_steps: WatchClockSteps = watch_clock_steps

    async def check(self, url: object, *, allow_http: bool) -> None:
        """Whether `url` may be registered: InvalidWebhookUrl when not."""
        if not (self.inside and isinstance(url, str) and self.inside.names(url)):
            await self.guard.check(url, allow_http=allow_http)

    def make_client(self, endpoint: Endpoint, receiver: TargetUrl) -> Client:
        """What sends to `receiver`, which is the URL of `endpoint` taken apart."""
        if self.inside and self.inside.names(endpoint.url):
            return self.inside.make_client(receiver, self.trust, self.budgets)
        trust = self.trust if endpoint.ca is None else OwnAuthority(endpoint.ca)
        if endpoint.pin is not None:
            trust = PinnedCertificate(endpoint.pin)
        return Client(receiver, self.guard, self.connect, trust, self.budgets)


def make_dependencies(settings: WebhookSettings) -> Dependencies:
    """What production uses; OperatorError when `webhooks.allow_networks` is wrong."""
    return Dependencies(guard=make_guard(settings), trust=SystemTrust(), uptime=SystemUptime())
