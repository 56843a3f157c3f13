"""A simulated internet connection of the box."""

import errno
import socket
from ipaddress import ip_address

from appliance.webhooks.client import connect_directly
from tests.webhooks.alarms import alarm_is

PUBLIC, OTHER_PUBLIC = "93.184.216.34", "93.184.216.35"
NO_NETWORK = OSError(errno.ENETUNREACH, "network is unreachable")
NO_ANSWER = socket.gaierror(socket.EAI_AGAIN, "temporary failure in name resolution")
LAN = "127.0.0.1"


class Internet:
    """Public addresses that lead to receivers of the test, until the connection is cut."""

    def __init__(self, names, surroundings):
        self.names = names
        self.surroundings = surroundings
        self.receivers = {}
        self.trouble = None
        self.dialled = []
        self._known = {}

    def add(self, host, address, receiver):
        self.receivers[address] = receiver
        self._known[host] = self.names.known[host] = [address]
        return f"http://{host}:8000/hook"

    async def connect(self, addresses, port):
        [address] = map(str, addresses)
        if address == LAN:
            return await connect_directly(addresses, port)
        self.dialled.append(address)
        if self.trouble is not None:
            raise self.trouble
        return await connect_directly([ip_address(LAN)], self.receivers[address].port)

    def lose_the_route(self):
        """No interface is up: every connection and every lookup fails at once."""
        self.trouble, self.surroundings.way_out = NO_NETWORK, False
        self._answer_no_names()

    def drop_packets(self):
        """The connection behind the router fails: neither receivers nor name servers answer."""
        self.trouble = TimeoutError()
        self._answer_no_names()

    def come_back(self):
        self.trouble, self.surroundings.way_out = None, True
        self.names.known.update(self._known)

    def _answer_no_names(self):
        self.names.known.update(dict.fromkeys(self._known, NO_ANSWER))


def charged(world):
    return world.rows("SELECT outcome, charged FROM attempt ORDER BY delivery_seq, n")


async def try_fails(timer):
    """Advance to the next attempt, one minute later."""
    await alarm_is(timer, 60)
    timer.advance(60)
