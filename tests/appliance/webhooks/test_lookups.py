"""Name servers that do not answer: one endpoint's are nobody else's trouble (P4)."""

import asyncio
import socket
import threading
from ipaddress import ip_address

import pytest

from appliance.webhooks import egress
from appliance.webhooks.addresses import EgressPolicy
from appliance.webhooks.egress import EgressGuard, SystemResolver
from appliance.webhooks.receiver import parse_receiver

GOOD = ip_address("93.184.216.34")
SILENT, WELL = (
    parse_receiver(f"https://{name}.example/", allow_http=False) for name in ("silent", "well")
)


@pytest.fixture
def guard():
    return EgressGuard(EgressPolicy((), lambda _address: False), SystemResolver())


class NameServers:
    """Those of hosts called silent answer once the test lets them."""

    def __init__(self):
        self.asked = []
        self.answer = threading.Event()
        self.trouble = None

    def getaddrinfo(self, host, *_args, **_kwargs):
        self.asked.append(host)
        if host.startswith("silent"):
            self.answer.wait(60)
            if self.trouble is not None:
                raise self.trouble
        return [(None, None, None, None, (str(GOOD), 0))]


@pytest.fixture
def servers(monkeypatch):
    made = NameServers()
    monkeypatch.setattr(socket, "getaddrinfo", made.getaddrinfo)
    monkeypatch.setattr(egress, "DNS_SECONDS", 0.05)
    yield made
    made.answer.set()


async def give_up(guard, times):
    asked = [guard.addresses(SILENT) for _ in range(times)]
    assert set(map(type, await asyncio.gather(*asked, return_exceptions=True))) == {TimeoutError}


async def found_in_the_end(guard, receiver):
    """Its addresses, however busy this machine is."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await guard.addresses(receiver)
            except TimeoutError:
                await asyncio.sleep(0)


async def test_a_host_whose_name_servers_are_silent_takes_no_place_from_another(guard, servers):
    for _ in range(20):  # each round gives up before the name server does
        await give_up(guard, 8)

    assert await found_in_the_end(guard, WELL) == [GOOD]
    assert servers.asked.count("silent.example") == 4


async def test_what_is_registered_waits_for_places_of_its_own(servers):
    guard = egress.make_guard(egress.WebhookSettings())
    urls = [f"https://silent-{n}.example/" for n in range(60)]

    await asyncio.gather(*(guard.check(url, allow_http=False) for url in urls))

    assert len(servers.asked) == 6
    assert await found_in_the_end(guard, WELL) == [GOOD]
