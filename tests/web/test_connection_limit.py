"""Nobody shuts the door for the others by holding connections."""

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


def test_one_device_may_hold_so_many_and_another_still_comes_in():
    limit = ConnectionLimit(10, per_address=2)

    assert [limit.enter("192.168.1.5") for _ in range(3)] == [True, True, False]
    assert limit.enter("192.168.1.6")


def test_who_leaves_makes_room():
    limit = ConnectionLimit(10, per_address=1)
    limit.enter("192.168.1.5")

    limit.leave("192.168.1.5")

    assert limit.enter("192.168.1.5")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.7"])
def test_who_speaks_for_many_has_the_total_alone(address):
    limit = ConnectionLimit(3, ["10.0.0.0/8"], per_address=1)

    assert [limit.enter(address) for _ in range(4)] == [True, True, True, False]


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


def test_more_connections_than_files_do_not_fill_the_log_and_the_next_one_comes_in(tmp_path):
    (tmp_path / "venue.toml").write_text(VENUE, "utf-8")
    data = str(tmp_path / "box")
    assert main(["init", "--data", data, "--venue", str(tmp_path / "venue.toml")], {}) == 0
    with Serving("--data", data, "--host", "127.0.0.1", "--port", "0", files=FILES) as serving:
        with contextlib.ExitStack() as crowd:
            for _ in range(2 * FILES):
                address = ("127.0.0.1", serving.port)
                crowd.enter_context(socket.create_connection(address, timeout=60))

        assert ask_once_they_left(serving.port) == 404
        serving.terminate()
        assert serving.complaint() == ""


def test_a_device_that_changes_its_ipv6_address_is_still_one_device():
    limit = ConnectionLimit(100, per_address=2)

    entered = [limit.enter(f"2001:db8::{number:x}") for number in range(10)]

    assert entered == [True] * 8 + [False] * 2
    assert limit.enter("2001:db8:0:1::1")
    limit.leave("2001:db8::1")
    assert limit.enter("2001:db8::99")
