"""What the dispatcher needs of the world outside; tests hand in another."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from appliance.clock_steps import WatchClockSteps, watch_clock_steps
from appliance.clock_trust import Synchronised, kernel_is_synchronised
from appliance.model.endpoint import Endpoint
from appliance.settings import WebhookSettings
from appliance.webhooks.client import Budgets, Client, Connect
from appliance.webhooks.dialling import connect_directly
from appliance.webhooks.egress import EgressGuard, make_guard
from appliance.webhooks.inside import Inside
from appliance.webhooks.network import Network, SystemNetwork
from appliance.webhooks.receiver import Receiver
from appliance.webhooks.trust import OwnAuthority, PinnedCertificate, SystemTrust, Trust
from appliance.webhooks.uptime import SystemUptime, Uptime


@dataclass(frozen=True, slots=True)
class Outside:
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

    def make_client(self, endpoint: Endpoint, receiver: Receiver) -> Client:
        """What sends to `receiver`, which is the URL of `endpoint` taken apart."""
        if self.inside and self.inside.names(endpoint.url):
            return self.inside.make_client(receiver, self.trust, self.budgets)
        trust = self._trust_for(endpoint)
        return Client(receiver, self.guard, self.connect, trust, self.budgets)

    def _trust_for(self, endpoint: Endpoint) -> Trust:
        if endpoint.pin is not None:
            return PinnedCertificate(endpoint.pin)
        return self.trust if endpoint.ca is None else OwnAuthority(endpoint.ca)


def make_outside(settings: WebhookSettings) -> Outside:
    """The real world; Trouble when `webhooks.allow_networks` is wrong. Serves both environments."""
    return Outside(guard=make_guard(settings), trust=SystemTrust(), uptime=SystemUptime())
