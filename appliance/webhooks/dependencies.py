"""Injectable dependencies of the webhook dispatcher."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from appliance.clock import Synchronised, kernel_is_synchronised
from appliance.clock_signals import SystemUptime, Uptime, WatchClockSteps, watch_clock_steps
from appliance.core.network import Network
from appliance.core.settings import WebhookSettings
from appliance.webhooks.client import (
    Budgets,
    Client,
    Connect,
    connect_directly,
)
from appliance.webhooks.endpoints import Endpoint
from appliance.webhooks.tls_trust import OwnAuthority, PinnedCertificate, SystemTrust, Trust
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
    """URLs that this process serves itself, reached over a socket pair instead of the network.

    The echo receiver of the test environment is one. The egress guard therefore needs no
    exception and always refuses loopback.
    """

    def __init__(self, names: Callable[[str], bool], connect: Connect) -> None:
        """`names` returns whether a URL is internal; `connect` is called without an address."""
        self._connect = connect
        self.names = names

    def make_client(self, receiver: TargetUrl, trust: Trust, budgets: Budgets) -> Client:
        """Create a client that can reach internal receivers only."""
        # A socket pair has no TLS; the Host header stays as in the URL.
        port = 80 if receiver.port == _HTTPS else receiver.port
        plain = replace(receiver, secure=False, port=port)
        nowhere = _Nowhere(EgressPolicy((), is_own_address), SystemResolver())
        client = Client(plain, nowhere, self._connect, trust, budgets)
        client.addresses = ()
        return client


class _Nowhere(EgressGuard):
    """A guard that looks nothing up and permits no address."""

    async def addresses(self, receiver: TargetUrl) -> Sequence[IpAddress]:  # noqa: ARG002 - as above
        """Return no addresses; the connector needs none."""
        return ()


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What the dispatcher uses: egress guard, trust, uptime, randomness, network and so on.

    `inside` contains the receivers that this process serves; only in the test environment.
    """

    guard: EgressGuard
    trust: Trust
    uptime: Uptime
    connect: Connect = connect_directly
    draw: Callable[[], float] = random.random
    budgets: Budgets = field(default_factory=Budgets)
    inside: Inside | None = None
    network: Network = field(default_factory=Network)
    synchronised: Synchronised = kernel_is_synchronised
    watch_clock_steps: WatchClockSteps = watch_clock_steps

    async def check(self, url: object, *, allow_http: bool) -> None:
        """Check whether `url` may be registered. Raises InvalidWebhookUrl if not."""
        if not (self.inside and isinstance(url, str) and self.inside.names(url)):
            await self.guard.check(url, allow_http=allow_http)

    def make_client(self, endpoint: Endpoint, receiver: TargetUrl) -> Client:
        """Create the client for `receiver`, the parsed URL of `endpoint`."""
        if self.inside and self.inside.names(endpoint.url):
            return self.inside.make_client(receiver, self.trust, self.budgets)
        trust = self.trust if endpoint.ca is None else OwnAuthority(endpoint.ca)
        if endpoint.pin is not None:
            trust = PinnedCertificate(endpoint.pin)
        return Client(receiver, self.guard, self.connect, trust, self.budgets)


def make_dependencies(settings: WebhookSettings) -> Dependencies:
    """Create the production dependencies. Raises OperatorError for invalid `allow_networks`."""
    return Dependencies(guard=make_guard(settings), trust=SystemTrust(), uptime=SystemUptime())
