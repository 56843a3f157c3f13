"""A venue behind NAT: guests use the public address, terminals the local one."""

import http.client
import json
import os
import socket
import ssl
import uuid
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.journeys.box_process import BoxProcess, found_box, venuebox
from tests.namespaces import Venue, may_build_a_venue, within
from tests.unit.tls.test_importing import a_certificate, pem_of

PORT, TLS_PORT = 8080, 8443
NAME = "box.example"
__test__ = may_build_a_venue()


@pytest.fixture
def venue():
    with Venue(f"vbn{os.getpid() % 10**6}") as built:
        yield built


@pytest.fixture
def founded(tmp_path):
    return found_box(tmp_path)


@pytest.fixture
def box(venue, founded, tmp_path):
    wrapper = ("ip", "netns", "exec", venue.box)
    box = BoxProcess(founded.data, log=tmp_path / "log", wrapper=wrapper)
    try:
        yield box
    finally:
        box.kill()


def serve(box, app_url):
    """Start or restart the box with that public address."""
    box.kill()
    box.settings |= {"VENUEBOX_SERVER_APP_URL": app_url}
    listen = ("--host", "0.0.0.0", "--port", str(PORT))  # noqa: S104 - in a network of its own
    box.spawn("--data", str(box.data), *listen)
    box.wait_until_ready()


@dataclass
class Answer:
    status: int
    body: bytes
    location: str | None

    @property
    def json(self):
        return json.loads(self.body)


def call(at, trusted, name, method, path, body=None, token=None, source=""):
    """Call the box at that address, from `source`; over https if a certificate is `trusted`."""
    connection = http.client.HTTPConnection(name, at[1])
    headers = {"Host": name, "Accept": "text/html", "Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    plain = socket.create_connection(at, timeout=10, source_address=(source, 0))
    with closing(trusted.wrap_socket(plain, server_hostname=name) if trusted else plain) as ready:
        connection.sock = ready
        connection.request(method, path, body and json.dumps(body), headers)
        response = connection.getresponse()
        return Answer(response.status, response.read(), response.headers["Location"])


def trusting(pem):
    return ssl.create_default_context(cadata=pem.decode())


def a_public_certificate(kind, folder, box):
    """Import a certificate for the public address; return what outside clients trust."""
    key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else (
        ec.generate_private_key(ec.SECP256R1())
    )  # fmt: skip
    pem = a_certificate(key, days=3650, names=(NAME,))
    (folder / "chain.pem").write_bytes(pem)
    (folder / "key.pem").write_bytes(pem_of(key))
    argv = ("--cert", str(folder / "chain.pem"), "--key", str(folder / "key.pem"))
    venuebox("tls", "import", *argv, data=box.data)
    return trusting(pem)


@pytest.mark.parametrize("kind", ["ec", "rsa"])
def test_the_door_scans_at_the_house_address_when_the_public_line_is_cut(
    venue, founded, box, tmp_path, kind
):
    serve(box, f"https://{NAME}")
    public = a_public_certificate(kind, tmp_path, box)
    from_outside = partial(within, venue.stranger, call, (venue.PUBLIC, 443), public, NAME)
    at_the_door = partial(within, venue.phone, call, (venue.BOX, PORT), None, venue.BOX)
    assert is_reached(from_outside)

    # The phone trusts the box and opens the pairing link, both at local addresses.
    authority = at_the_door("GET", "/trust/ca.crt").body
    own = trusting(ssl.DER_cert_to_PEM_cert(authority).encode())
    inside = partial(within, venue.phone, call, (venue.BOX, TLS_PORT), own, venue.BOX)
    assert at_the_door("GET", "/door").location is None
    offer = ("--environment", "live", "--name", "Entrée", "--json")
    link = json.loads(venuebox("terminal", "pair", *offer, data=founded.data))["url"]
    base, _, secret = link.partition("/door#pair=")
    assert base == f"https://{venue.BOX}:{TLS_PORT}"
    assert inside("GET", "/door").status == 200
    token = inside("POST", "/terminal/v1/pair", {"code": secret}).json["token"]

    codes = [book(from_outside, founded, number)["accessCode"] for number in range(2)]
    assert scan(inside, token, codes[0]) == "checked_in"

    venue.cut_the_line()

    assert not is_reached(from_outside)
    assert scan(inside, token, codes[1]) == "checked_in"
    by_name = partial(within, venue.phone, call, (venue.BOX, TLS_PORT), own, "riad-atlas.local")
    assert by_name("GET", "/terminal/v1/me", None, token).status == 200


def is_reached(ask):
    try:
        return ask("GET", "/health").status == 200
    except OSError:
        return False


def book(ask, founded, number):
    table = ask("GET", "/v1/venue", None, founded.keys["live"]).json["tables"][number]["id"]
    evening = ask("GET", "/terminal/v1/me", None, founded.terminals["live"]).json["evening"]
    wish = {"tableId": table, "date": evening, "guests": 2, "idempotencyKey": f"b{number}",
            "customer": {"name": "Salma", "phone": "+212600000001"}}  # fmt: skip
    made = ask("POST", "/v1/reservations", wish, founded.keys["live"])
    assert made.status == 201, made.body
    assert made.json["guestAccessUrl"].startswith(f"https://{NAME}/access/")
    return made.json


def scan(ask, token, code):
    return ask(
        "POST", "/terminal/v1/scans", {"scanId": str(uuid.uuid4()), "code": code}, token
    ).json["result"]


def test_a_phone_that_trusts_the_box_does_so_after_the_public_address_is_set(venue, box):
    serve(box, "")
    at_the_door = (venue.BOX, PORT), None, venue.BOX
    authority = within(venue.phone, call, *at_the_door, "GET", "/trust/ca.crt").body
    own = trusting(ssl.DER_cert_to_PEM_cert(authority).encode())
    at_home = (venue.BOX, TLS_PORT), own, venue.BOX
    assert within(venue.phone, call, *at_home, "GET", "/health").status == 200

    serve(box, "https://third.example")

    assert within(venue.phone, call, *at_home, "GET", "/health").status == 200
