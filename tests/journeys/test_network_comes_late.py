"""The box's address in networks of its own: one that comes late, and several at once."""

import json
import os
import socket
import ssl
import subprocess
import time
import urllib.request

import pytest

from tests.journeys.box_process import PROGRAM, clean_environ, found_box
from tests.namespaces import Cable, ip, may_make_namespaces, within
from tests.waiting import until_true
from web.mdns import find_addresses

HOME, GUEST = "10.214.7.1", "10.214.7.2"
PORT, TLS_PORT = 18080, 18443
ANYWHERE = "0.0.0.0"  # noqa: S104 - of a network of its own
__test__ = may_make_namespaces()  # else only tests/app/names/test_announcing.py tests this


@pytest.fixture
def cable():
    """A link to a box that has only loopback; not yet connected."""
    with Cable(f"vbl{os.getpid() % 10**6}") as found:
        yield found


@pytest.fixture
def box(cable, tmp_path):
    founded = found_box(tmp_path)
    run = ["ip", "netns", "exec", cable.inside, PROGRAM, "serve", "--data", str(founded.data),
           "--host", ANYWHERE, "--port", str(PORT)]  # fmt: skip
    environ = clean_environ({"VENUEBOX_SERVER_TLS_PORT": str(TLS_PORT)})
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(run, env=environ, stdout=subprocess.PIPE, stderr=log, text=True) as box,
    ):
        try:
            assert box.stdout.readline().startswith("ready ")
            yield founded
        finally:
            box.terminate()


def plug_in(cable):
    cable.plug_in(HOME, GUEST)
    ip("-n", cable.inside, "route", "add", "default", "via", HOME)


def anybody():
    """A TLS context that accepts every certificate; the test checks it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def ask(founded, path, body=None):
    call = urllib.request.Request(
        f"https://{GUEST}:{TLS_PORT}{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {founded.keys['live']}"},
    )
    with urllib.request.urlopen(call, timeout=60, context=anybody()) as answer:  # noqa: S310 - as built
        return json.load(answer)


def certified():
    """Return whether the box's certificate contains its address."""
    with (
        socket.create_connection((GUEST, TLS_PORT), timeout=60) as raw,
        anybody().wrap_socket(raw) as secured,
    ):
        return socket.inet_aton(GUEST) in secured.getpeercert(binary_form=True)


def until(condition):
    """Wait until `condition()` is true; the box looks every few seconds."""
    until_true(condition, seconds=60)


def test_an_address_that_comes_after_the_start_is_in_links_and_in_the_certificate(cable, box):
    address = box.data / "address"
    assert address.read_text() == f"http://127.0.0.1:{PORT}"

    plug_in(cable)

    until(lambda: address.read_text() == f"http://{GUEST}:{PORT}")
    table = cable.within(ask, box, "/v1/venue")["tables"][0]["id"]
    wish = {"tableId": table, "date": time.strftime("%Y-%m-%d", time.gmtime(time.time() + 864_000)),
            "guests": 2, "customer": {"name": "Salma", "phone": "+212600000001"},
            "idempotencyKey": "one"}  # fmt: skip
    granted = cable.within(ask, box, "/v1/reservations", wish)
    assert granted["guestAccessUrl"].startswith(f"http://{GUEST}:{PORT}/access/")
    until(lambda: cable.within(certified))
    assert "addresses: check failed" not in (box.data.parent / "log").read_text()


# Another network beside the house, and the way out ("-": none, "": the router of the house).
MACHINES = {
    "one network": ("", ""),
    "docker, and a router": ("link add docker0 type bridge", ""),
    "docker, no router": ("link add docker0 type bridge", "-"),
    "a VPN on the way out": ("tuntap add dev office mode tun", "office"),
    "tailscale, no router": ("tuntap add dev tailscale0 mode tun", "-"),
    "a modem on the way out": ("link add wwan0 type veth peer name mast", "wwan0"),
}
ADDRESSES = {
    "docker0": "172.17.0.1/16", "office": "10.66.0.2/24", "tailscale0": "100.101.102.103/32",
    "wwan0": "10.155.3.9/30",
}  # fmt: skip


@pytest.mark.network
@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_with_other_networks_gives_out_the_address_of_the_house(machine):
    made, way_out = MACHINES[machine]
    network = f"vbhouse{os.getpid()}"
    ip("netns", "add", network)
    try:
        add(network, "link add eth0 type veth peer name switch", "eth0", "192.168.1.20/24")
        ip("-n", network, "link", "set", "dev", "switch", "up")
        other = next((name for name in ADDRESSES if name in made), "")
        if other:
            add(network, made, other, ADDRESSES[other])
        if "mast" in made:
            ip("-n", network, "link", "set", "dev", "mast", "up")
        if way_out != "-":
            route = ["dev", way_out] if way_out else ["via", "192.168.1.1", "dev", "eth0"]
            ip("-n", network, "route", "add", "default", *route)

        assert within(network, find_addresses, ANYWHERE, PORT, None) == (
            "http://192.168.1.20:18080",
        )
    finally:
        ip("netns", "del", network)


def add(network, command, name, address):
    ip("-n", network, *command.split())
    ip("-n", network, "addr", "add", address, "dev", name)
    ip("-n", network, "link", "set", "dev", name, "up")
