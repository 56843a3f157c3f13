"""A box that started before its network: later, links and certificate use its address."""

import json
import os
import socket
import ssl
import subprocess
import time
import urllib.request

import pytest

from tests.journeys.box_process import PROGRAM, clean_environ, found_box
from tests.namespaces import Cable, ip, may_make_namespaces

HOME, GUEST = "10.214.7.1", "10.214.7.2"
PORT, TLS_PORT = 18080, 18443
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
           "--host", "0.0.0.0", "--port", str(PORT)]  # fmt: skip # noqa: S104 - all of its own
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
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


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
