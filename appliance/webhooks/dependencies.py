"""Dependencies of the webhook dispatcher, which tests can replace."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from appliance.clock import (
    Synchronised,
    SystemUptime,
    Uptime,
    WatchClockSteps,
    kernel_is_synchronised,
    watch_clock_steps,
)
from appliance.core.network import Network
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
from appliance.webhooks.url_policy import EgressGuard, TargetUrl, make_guard, parse_target_url


class Inside:
    """Receivers inside this process, such as the test environment's echo receiver.

    They are reached over a socket pair, so the egress guard needs no exception for loopback.
    """

    def __init__(self, names: Callable[[str], bool], connect: Connect) -> None:
        """`names` must return whether a URL belongs to a receiver inside this process.

        `connect` gets an empty sequence of addresses, because a socket pair has none.
        """
        self._connect = connect
        self.names = names

    def make_client(self, receiver: TargetUrl, trust: Trust, budgets: Budgets) -> Client:
        """Create a client that can reach internal receivers only."""
        # There is no TLS on a socket pair. With port 443 but no TLS, the Host header would contain
        # the port, so use port 80.
        port = 80 if receiver.port == 443 else receiver.port
        plain = replace(receiver, secure=False, port=port)
        client = Client(plain, None, self._connect, trust, budgets)
        client.addresses = ()
        return client


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The dispatcher's dependencies. `inside` is set in the test environment only.

    `draw` returns a random number in [0, 1).
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

    def is_inside(self, url: object) -> bool:
        """Whether `url` is the URL of a receiver inside this process."""
        return isinstance(url, str) and self.inside is not None and self.inside.names(url)

    def make_client(self, endpoint: Endpoint, *, allow_http: bool) -> Client:
        """Create the client for an endpoint. Raises InvalidWebhookUrl if its URL is invalid."""
        receiver = parse_target_url(endpoint.url, allow_http=allow_http)
        if self.inside and self.inside.names(endpoint.url):
            return self.inside.make_client(receiver, self.trust, self.budgets)
        trust = self.trust if endpoint.ca is None else OwnAuthority(endpoint.ca)
        if endpoint.pin is not None:
            trust = PinnedCertificate(endpoint.pin)
        return Client(receiver, self.guard, self.connect, trust, self.budgets)


def make_dependencies(settings: WebhookSettings) -> Dependencies:
    """Create the production dependencies. Raises OperatorError if `allow_networks` is invalid."""
    return Dependencies(guard=make_guard(settings), trust=SystemTrust(), uptime=SystemUptime())
