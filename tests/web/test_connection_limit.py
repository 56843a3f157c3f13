"""Nobody shuts the door for the others by holding connections."""

import asyncio
import contextlib
import http.client
import socket
import time

import pytest

from tests.web.processes import Serving
from web.connection_limit import ConnectionLimit
from web.main import main

VENUE = 'name = "Riad"\nslug = "riad"\n[[tables]]\nnumber = "T1"\ncapacity_max = 4\n'
FILES = 200


class Peer(asyncio.Transport):
    """A connection from that address."""

    def __init__(self, address):
        super().__init__({"peername": (address, 50_000)})
        self.is_open = True

    def abort(self):
        self.is_open = False


def enter(limit, *addresses):
    """A connection from each, and which of them were let in."""
    peers = [Peer(address) for address in addresses]
    entered = [limit.enter(peer) for peer in peers]
    assert [peer for peer, let_in in zip(peers, entered, strict=True) if let_in] == [
        peer for peer in peers if peer.is_open
    ]
    return peers, entered


@pytest.mark.proves("S19")
def test_one_device_may_hold_so_many_and_another_still_comes_in():
    limit = ConnectionLimit(10, per_address=2)

    assert enter(limit, *["192.168.1.5"] * 3)[1] == [True, True, False]
    assert enter(limit, "192.168.1.6")[1] == [True]


def test_who_leaves_makes_room():
    limit = ConnectionLimit(10, per_address=1)
    [first], _ = enter(limit, "192.168.1.5")

    limit.leave(first)

    assert enter(limit, "192.168.1.5")[1] == [True]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.7", "2001:db8::7"])
def test_who_speaks_for_many_has_the_total_alone(address):
    limit = ConnectionLimit(9, ["10.0.0.0/8", "2001:db8::7"], per_address=1)

    assert enter(limit, *[address] * 10)[1] == [True] * 9 + [False]


@pytest.mark.proves("S19")
def test_a_device_that_changes_its_ipv6_address_is_still_one_device():
    limit = ConnectionLimit(100, per_address=2)

    peers, entered = enter(limit, *[f"2001:db8::{number:x}" for number in range(10)])

    assert entered == [True] * 8 + [False] * 2
    assert enter(limit, "2001:db8:0:1::1")[1] == [True]
    limit.leave(peers[0])
    assert enter(limit, "2001:db8::99")[1] == [True]


@pytest.mark.proves("S19")
@pytest.mark.parametrize("addresses", [11, 250])
def test_a_newcomer_takes_the_oldest_place_of_whoever_holds_most(addresses):
    limit = ConnectionLimit(2048)
    crowd = [enter(limit, *[f"10.0.0.{number}"] * 200)[0] for number in range(addresses)]
    held = [peer for peers in crowd for peer in peers if peer.is_open]
    most = max(sum(peer.is_open for peer in peers) for peers in crowd)

    _, entered = enter(limit, *[f"192.168.1.{number}" for number in range(40)])

    assert len(held) == 2048
    assert entered == [True] * 40
    assert sum(peer.is_open for peer in held) == 2048 - 40
    assert max(sum(peer.is_open for peer in peers) for peers in crowd) <= most
    assert not any(peers[0].is_open for peers in crowd if sum(p.is_open for p in peers) < most)


def test_nobody_who_holds_as_many_as_the_others_takes_a_place():
    limit = ConnectionLimit(2)
    first, _ = enter(limit, "192.168.1.5", "192.168.1.6")

    assert enter(limit, "192.168.1.5")[1] == [False]
    assert enter(limit, "192.168.1.7")[1] == [True]
    assert [peer.is_open for peer in first] == [False, True]


def ask(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/nowhere")
        return connection.getresponse().status
    finally:
        connection.close()


def ask_once_they_left(port):
    """The box learns from each of them that it left, and turns others away until then."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return ask(port)
        except ConnectionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.01)


@pytest.fixture
def crowded(tmp_path):
    """The real program with few places, and how to take all of them from an address."""
    (tmp_path / "venue.toml").write_text(VENUE, "utf-8")
    data = str(tmp_path / "box")
    assert main(["init", "--data", data, "--venue", str(tmp_path / "venue.toml")], {}) == 0
    box = ("--data", data, "--host", "127.0.0.1", "--port", "0")
    with Serving(*box, files=FILES) as serving, contextlib.ExitStack() as crowd:

        def come_from(source):
            for _ in range(2 * FILES):
                crowd.enter_context(
                    socket.create_connection(
                        ("127.0.0.1", serving.port), timeout=60, source_address=(source, 0)
                    )
                )

        yield serving, crowd, come_from


def test_more_connections_than_files_do_not_fill_the_log_and_the_next_one_comes_in(crowded):
    serving, crowd, come_from = crowded
    come_from("127.0.0.1")
    crowd.close()

    assert ask_once_they_left(serving.port) == 404
    serving.terminate()
    assert serving.complaint() == ""


@pytest.mark.proves("S19")
def test_a_newcomer_is_answered_while_another_address_holds_every_place(crowded):
    serving, _, come_from = crowded
    come_from("127.0.0.2")

    assert [ask(serving.port) for _ in range(20)] == [404] * 20
    serving.terminate()
    assert serving.complaint() == ""
