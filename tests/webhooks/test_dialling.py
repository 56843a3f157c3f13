"""Resolving, connecting and TLS, and the code of each failure."""

import asyncio
import errno
import os
import socket
from ipaddress import IPv4Address

import pytest

from tests.webhooks.attempts import LATE, REQUEST, SHORT_CONNECT, timed


async def test_a_port_without_a_listener_is_a_refused_connection(make_client):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        client = make_client(f"http://127.0.0.1:{bound.getsockname()[1]}/")

        outcome = await client.post(REQUEST)

    assert (outcome.phase, outcome.code) == ("connect", "conn_refused")


async def test_an_unresponsive_address_is_given_up_early(make_client, receiver):
    async def connect(_addresses, _port):
        await asyncio.sleep(60)

    client = make_client(receiver.url, connect=connect, budgets=SHORT_CONNECT)

    outcome, seconds = await timed(client.post(REQUEST))

    assert (outcome.phase, outcome.code) == ("connect", "conn_timeout")
    assert seconds < LATE


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (socket.gaierror(socket.EAI_NONAME, "x"), "dns_nxdomain"),
        (socket.gaierror(socket.EAI_AGAIN, "x"), "dns_temp"),
        (socket.gaierror(socket.EAI_FAIL, "x"), "dns_temp"),
        (TimeoutError(), "dns_temp"),
        (["93.184.216.34", "10.0.0.1"], "blocked"),
    ],
)
async def test_each_kind_of_failed_lookup_has_its_own_code(make_client, names, trouble, code):
    names.known["receiver.example"] = trouble

    outcome = await make_client("http://receiver.example/").post(REQUEST)

    assert (outcome.phase, outcome.code) == ("guard" if code == "blocked" else "dns", code)


async def test_only_the_addresses_that_were_checked_are_dialled(make_client, names):
    names.known["receiver.example"] = ["93.184.216.34", "93.184.216.35"]
    dialled = []

    async def connect(addresses, port):
        dialled.append((list(addresses), port))
        raise ConnectionRefusedError

    await make_client("http://receiver.example:8080/", connect=connect).post(REQUEST)

    assert dialled == [([IPv4Address("93.184.216.34"), IPv4Address("93.184.216.35")], 8080)]
    assert names.asked == ["receiver.example"]


def load(context, certificate, key):
    """Load a certificate from an unnamed file, because SSLContext reads only files."""
    handle = os.memfd_create("certificate")
    try:
        os.write(handle, certificate + key)
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


V4, OTHER_V4, V6 = "93.184.216.34", "93.184.216.35", "2606:2800:220::1"
REFUSED, TIMED_OUT, NO_HOST = errno.ECONNREFUSED, errno.ETIMEDOUT, errno.EHOSTUNREACH
NO_NETWORK, DOWN, NOT_MINE = errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL


@pytest.fixture
def fail(monkeypatch):
    """`fail({address: errno})`: make connections to each address fail with its errno."""

    def plan(failures):
        async def sock_connect(_loop, _sock, address):
            number = failures[address[0]]
            raise OSError(number, f"{address[0]}: {number}")

        loop = type(asyncio.get_running_loop())
        monkeypatch.setattr(loop, "sock_connect", sock_connect)

    return plan


async def test_an_unresponsive_address_leaves_enough_time_for_the_next_one(
    make_client, names, receiver, monkeypatch
):
    names.known["receiver.example"] = ["127.0.0.9", "127.0.0.1"]
    monkeypatch.setattr("appliance.webhooks.client._NEXT_ADDRESS_SECONDS", 0.01)
    loop = type(asyncio.get_running_loop())
    connect = loop.sock_connect

    async def sock_connect(self, sock, address):
        if address[0] == "127.0.0.9":
            await asyncio.sleep(60)
        await connect(self, sock, address)

    monkeypatch.setattr(loop, "sock_connect", sock_connect)

    outcome = await make_client(f"http://receiver.example:{receiver.port}/").post(REQUEST)

    assert (outcome.code, outcome.remote_address) == ("delivered", "127.0.0.1")


async def test_the_second_address_is_dialled_if_the_first_refuses(make_client, names, receiver):
    names.known["receiver.example"] = ["127.0.0.9", "127.0.0.1"]

    outcome = await make_client(f"http://receiver.example:{receiver.port}/").post(REQUEST)

    assert (outcome.code, outcome.remote_address) == ("delivered", "127.0.0.1")


@pytest.mark.parametrize(
    ("failures", "code"),
    [
        ({V4: REFUSED, V6: NO_NETWORK}, "conn_refused"),
        ({V6: NO_NETWORK, V4: REFUSED}, "conn_refused"),
        ({V4: TIMED_OUT, V6: NOT_MINE}, "conn_timeout"),
        ({V4: TIMED_OUT, OTHER_V4: REFUSED}, "conn_refused"),
        ({V4: NO_HOST, V6: NO_NETWORK}, "unreachable"),
        ({V4: errno.EACCES, V6: NO_NETWORK}, "failed"),
        ({V4: NO_NETWORK, V6: NOT_MINE}, "no_route"),
        ({V6: NOT_MINE, V4: DOWN}, "no_route"),
        ({V4: NO_NETWORK, OTHER_V4: NO_NETWORK}, "no_route"),
        ({V6: NOT_MINE}, "unreachable"),
    ],
)
async def test_a_failure_of_the_receiver_is_reported_in_preference_to_one_of_the_box(
    make_client, names, fail, failures, code
):
    names.known["both.example"] = list(failures)
    fail(failures)
    client = make_client("http://both.example:8080/")

    outcome = await client.post(REQUEST)

    assert (outcome.phase, outcome.code) == ("connect", code)
