"""What the dispatcher needs of the world outside; tests hand in another."""

import asyncio
import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from appliance.settings import WebhookSettings
from appliance.webhooks.client import Budgets, Client, Connect, Trust, connect_directly
from appliance.webhooks.egress import EgressGuard, make_guard
from appliance.webhooks.inside import Inside
from appliance.webhooks.receiver import Receiver
from appliance.webhooks.uptime import SystemUptime, Uptime


@dataclass(frozen=True, slots=True)
class Outside:
    """Guard and connector, certificates to trust, time since boot, chance, patience.

    `inside` has the receivers that are part of this process, in the test environment alone.
    """

    guard: EgressGuard
    trust: Trust
    uptime: Uptime
    connect: Connect = connect_directly
    draw: Callable[[], float] = random.random
    budgets: Budgets = field(default_factory=Budgets)
    inside: Inside | None = None

    async def check(self, url: object, *, allow_http: bool) -> None:
        """Whether `url` may be registered: InvalidWebhookUrl when not."""
        if not (self.inside and isinstance(url, str) and self.inside.names(url)):
            await self.guard.check(url, allow_http=allow_http)

    def make_client(self, url: str, receiver: Receiver) -> Client:
        """What sends to `receiver`, which is `url` taken apart."""
        if self.inside and self.inside.names(url):
            return self.inside.make_client(receiver, self.trust, self.budgets)
        return Client(receiver, self.guard, self.connect, self.trust, self.budgets)


def make_outside(settings: WebhookSettings) -> Outside:
    """The real world; Trouble when `webhooks.allow_networks` is wrong. Serves both environments."""
    return Outside(guard=make_guard(settings), trust=SystemTrust(), uptime=SystemUptime())


class SystemTrust:
    """The certificates that this machine trusts, read when the first https receiver asks."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None

    async def __call__(self) -> ssl.SSLContext:
        """The context; reading the certificates takes 40 ms, which are a thread's."""
        if self._context is None:
            self._context = await asyncio.to_thread(_read_certificates)
        return self._context


def _read_certificates() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
