"""Receivers that are part of this very process: reached by a pair of sockets, never by an address.

The test environment's echo receiver is one. No connection is made and no port is opened, so the
egress guard has no exception: it still refuses loopback and the box's own addresses to everybody.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from appliance.webhooks.addresses import EgressPolicy, IpAddress
from appliance.webhooks.client import Budgets, Client, Connect
from appliance.webhooks.egress import EgressGuard
from appliance.webhooks.receiver import Receiver
from appliance.webhooks.trust import Trust

_HTTPS = 443


class Inside:
    """The URLs that this process answers itself, and how it is reached without a network."""

    def __init__(self, names: Callable[[str], bool], connect: Connect) -> None:
        """`names` knows a URL of ours; `connect` is called with no address at all."""
        self._connect = connect
        self.names = names

    def make_client(self, receiver: Receiver, trust: Trust, budgets: Budgets) -> Client:
        """A client that can reach nothing but what is inside."""
        # No TLS on a pair of sockets; the Host header stays what the URL says.
        port = 80 if receiver.port == _HTTPS else receiver.port
        plain = replace(receiver, secure=False, port=port)
        client = Client(plain, _Nowhere(), self._connect, trust, budgets)
        client.addresses = ()
        return client


class _Nowhere(EgressGuard):
    """A guard that looks nothing up and permits no address."""

    def __init__(self) -> None:
        super().__init__(EgressPolicy((), lambda _address: True), _no_addresses)

    async def addresses(self, receiver: Receiver) -> Sequence[IpAddress]:  # noqa: ARG002 - as above
        """None: the connector needs none."""
        return ()


async def _no_addresses(_host: str) -> Sequence[IpAddress]:
    return ()
