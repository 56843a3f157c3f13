"""Before a box serves, it looks for another box of its venue on the network."""

from dataclasses import replace
from ipaddress import ip_interface

import pytest

from appliance.core import network
from appliance.core.errors import OperatorError
from appliance.core.network import is_beside
from appliance.core.tokens import Keyring
from web import mdns
from web.mdns import refuse_duplicate

ANYWHERE = "0.0.0.0"  # noqa: S104 - nothing listens


@pytest.fixture
def found(monkeypatch):
    """The announced base URLs of the venue. An exception in the list is raised."""
    urls = []

    async def look_up(_venue_id, _host):
        if urls and isinstance(urls[0], Exception):
            raise urls[0]
        return urls

    monkeypatch.setattr(mdns, "_look_up", look_up)
    return urls


async def test_another_box_with_the_same_keys_is_reported_as_a_duplicate(running, found):
    found.append(str(running.client.make_url("")))

    with pytest.raises(OperatorError):
        await refuse_duplicate(running.box, ANYWHERE)
    await refuse_duplicate(running.box, "127.0.0.1")


async def test_another_box_with_different_keys_is_not_a_duplicate(running, found):
    found.append(str(running.client.make_url("")))
    other = replace(running.box.live, keyring=Keyring(bytes(32), "live"))

    await refuse_duplicate(replace(running.box, live=other), ANYWHERE)


@pytest.mark.parametrize("trouble", [OSError("no network"), RuntimeError("no adapter")])
async def test_a_failing_network_does_not_prevent_the_box_from_serving(box, found, trouble):
    found.append(trouble)

    await refuse_duplicate(box, ANYWHERE)


@pytest.mark.parametrize(
    ("address", "is_asked"),
    [
        ("192.168.1.20", True),
        ("fd00::20", True),
        ("192.168.1.7", False),  # the box's own announcement
        ("192.168.2.20", False),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("fe80::1", False),
        ("::1", False),
        ("8.8.8.8", False),
    ],
)
def test_only_other_machines_in_the_boxs_own_networks_are_asked(monkeypatch, address, is_asked):
    networks = ("192.168.1.7/24", "fd00::7/64")
    own = [network.Interface("eth0", 2, ip_interface(text)) for text in networks]
    monkeypatch.setattr(network, "own_interfaces", lambda: own)

    assert is_beside(address) == is_asked
