"""What the dispatcher needs of the world outside; tests hand in another."""

import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from appliance.settings import WebhookSettings
from appliance.webhooks.client import Budgets, Connect, connect_directly
from appliance.webhooks.egress import EgressGuard, make_guard
from appliance.webhooks.uptime import SystemUptime, Uptime


@dataclass(frozen=True, slots=True)
class Outside:
    """Guard and connector, certificates to trust, time since boot, chance, patience."""

    guard: EgressGuard
    tls: ssl.SSLContext
    uptime: Uptime
    connect: Connect = connect_directly
    draw: Callable[[], float] = random.random
    budgets: Budgets = field(default_factory=Budgets)


def make_outside(settings: WebhookSettings) -> Outside:
    """The real world; Trouble when `webhooks.allow_networks` is wrong. Serves both environments."""
    tls = ssl.create_default_context()
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    return Outside(guard=make_guard(settings), tls=tls, uptime=SystemUptime())
