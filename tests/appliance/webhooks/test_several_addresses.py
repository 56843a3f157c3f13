"""A receiver with addresses of both kinds: which of its failures counts."""

import asyncio
import errno
import socket

import pytest

from tests.appliance.webhooks.attempts import REQUEST

V4, OTHER_V4, V6 = "93.184.216.34", "93.184.216.35", "2606:2800:220::1"
REFUSED, LATE, NO_HOST = errno.ECONNREFUSED, errno.ETIMEDOUT, errno.EHOSTUNREACH
NO_NETWORK, DOWN, NOT_MINE = errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL


@pytest.fixture
def fail(monkeypatch):
    """`fail({address: errno})`: what connecting to each comes to."""

    def plan(failures):
        async def sock_connect(_loop, _sock, address):
            number = failures[address[0]]
            raise OSError(number, f"{address[0]}: {number}")

        loop = type(asyncio.get_running_loop())
        monkeypatch.setattr(loop, "sock_connect", sock_connect)

    return plan


@pytest.mark.parametrize(
    ("failures", "code"),
    [
        ({V4: REFUSED, V6: NO_NETWORK}, "conn_refused"),
        ({V6: NO_NETWORK, V4: REFUSED}, "conn_refused"),
        ({V4: LATE, V6: NOT_MINE}, "conn_timeout"),
        ({V4: LATE, OTHER_V4: REFUSED}, "conn_refused"),
        ({V4: NO_HOST, V6: NO_NETWORK}, "unreachable"),
        ({V4: errno.EACCES, V6: NO_NETWORK}, "failed"),
        ({V4: NO_NETWORK, V6: NOT_MINE}, "no_route"),
        ({V6: NOT_MINE, V4: DOWN}, "no_route"),
        ({V4: NO_NETWORK, OTHER_V4: NO_NETWORK}, "no_route"),
        ({V6: NOT_MINE}, "unreachable"),
    ],
)
async def test_of_several_failures_the_receivers_own_word_counts_and_ours_only_if_all_are(
    make_client, names, fail, failures, code
):
    names.known["both.example"] = list(failures)
    fail(failures)
    client = make_client("http://both.example:8080/")

    outcome = await client.post(REQUEST)

    assert (outcome.phase, outcome.code) == ("connect", code)
    assert await client.reach() == code


async def test_a_machine_without_ipv6_that_has_no_route_knows_that_it_is_offline(
    make_client, names, fail, monkeypatch
):
    names.known["both.example"] = [V6, V4]
    fail({V4: NO_NETWORK})
    make = socket.socket

    def without_ipv6(family=-1, *args, **kwargs):
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return make(family, *args, **kwargs)

    monkeypatch.setattr(socket, "socket", without_ipv6)

    assert await make_client("http://both.example:8080/").reach() == "no_route"


async def test_one_address_that_answers_is_enough(make_client, names, receiver):
    with socket.socket(socket.AF_INET) as deaf:  # bound, and nobody listens
        deaf.bind(("127.0.0.2", receiver.port))
        names.known["both.example"] = ["127.0.0.2", "127.0.0.1"]

        outcome = await make_client(f"http://both.example:{receiver.port}/").post(REQUEST)

    assert outcome.delivered
