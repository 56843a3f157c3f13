"""Which addresses of the machine are reachable from the venue's network, despite VPNs."""

from ipaddress import ip_interface

import pytest

from appliance.core.network import Interface, house_addresses
from tests.app.portal.people import a_person
from web import mdns
from web.mdns import find_addresses

ANYWHERE, PORT = "0.0.0.0", 8080  # noqa: S104 - nothing listens
HOUSE = ("eth0", "192.168.1.20/24")


def interfaces(*rows):
    return [
        Interface(name, number, ip_interface(network), *link)
        for number, (name, network, *link) in enumerate(rows, 1)
    ]


@pytest.mark.parametrize(
    "other",
    [("docker0", "172.17.0.1/16"), ("br-1f2e3d4c5b6a", "172.18.0.1/16"), ("vethab", "10.9.0.1/24"),
     ("virbr0", "192.168.122.1/24"), ("podman0", "10.88.0.1/16"), ("hassio", "172.30.32.1/23"),
     ("wg0", "10.66.0.2/24"), ("tun0", "10.8.0.6/24"), ("office", "10.8.0.6/24", False),
     ("tailscale0", "100.101.102.103/32"), ("eth1", "100.72.0.9/24"), ("zt7nni", "10.147.17.5/24"),
     ("ppp0", "10.64.64.64/24"), ("wwan0", "10.155.3.9/24"), ("eth1", "10.155.3.9/30"),
     ("eth1", "10.155.3.9/31"), ("eth1", "10.155.3.9/32"), ("eth0", "fd00::20/64")],
)  # fmt: skip
def test_addresses_of_a_vpn_container_or_carrier_are_not_offered(other):
    assert house_addresses(interfaces(other, HOUSE)) == ["192.168.1.20"]


@pytest.mark.parametrize(
    "name", ["eth0", "enp3s0", "wlan0", "wlp2s0", "end0", "br0", "vmbr0", "bond0"]
)
def test_the_addresses_in_all_private_networks_are_offered(name):
    assert house_addresses(interfaces((name, "10.0.0.5/24"))) == ["10.0.0.5"]


def test_private_addresses_come_before_public_ones():
    found = house_addresses(interfaces(("eth0", "41.140.1.2/24"), ("wlan0", "192.168.1.20/24")))

    assert found == ["192.168.1.20", "41.140.1.2"]


@pytest.mark.parametrize(
    ("way_out", "remembered", "first"),
    [("192.168.8.100", "http://192.168.1.20:8080", "192.168.8.100"),
     ("10.66.0.2", "http://192.168.8.100:8080", "192.168.8.100"),
     (None, "http://192.168.8.100:9090", "192.168.1.20"), (None, None, "192.168.1.20")],
)  # fmt: skip
def test_the_address_on_the_default_route_comes_first_and_then_the_last_used_one(
    monkeypatch, way_out, remembered, first
):
    own = interfaces(HOUSE, ("eth1", "192.168.8.100/24"), ("wg0", "10.66.0.2/24"))
    monkeypatch.setattr(mdns, "own_interfaces", lambda: own)
    monkeypatch.setattr(mdns, "source_address", lambda _: way_out)

    found = find_addresses(ANYWHERE, PORT, remembered)

    assert found[0] == f"http://{first}:8080"
    assert set(found) == {"http://192.168.1.20:8080", "http://192.168.8.100:8080"}


@pytest.mark.parametrize("host", [ANYWHERE, "10.0.0.5"])
def test_the_configured_address_overrides_the_detected_ones(monkeypatch, host):
    monkeypatch.setattr(mdns, "own_interfaces", lambda: interfaces(HOUSE))
    monkeypatch.setattr(mdns, "source_address", lambda _: "192.168.1.20")

    assert find_addresses(host, PORT, None, "10.1.2.3") == ("http://10.1.2.3:8080",)


async def test_a_phone_is_offered_every_possible_address_in_the_venue(running):
    running.box.move("http://192.168.1.20:8080", "http://192.168.8.100:8080")
    manager = await a_person(running, "manager")

    _, page, _ = await manager.post("/portal/door/pair", {"name": "Porte 1", "role": "scan"})

    for address in ("192.168.1.20", "192.168.8.100"):
        assert page.count(f"//{address}:") >= 1
        assert "/door#pair=" in page.partition(f"//{address}:")[2][:40]
    assert page.count("<svg") >= 2
