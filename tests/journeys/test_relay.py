"""A real box behind a real relay: what outside callers get, and what the relay can do to them."""

import asyncio
import http.client
import json
import socket
import ssl
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from appliance.alerts import list_alerts
from appliance.core.network import own_addresses
from appliance.database.connection import Reader, open_for_command
from appliance.relay_access import Access, access_file
from tests.app.relay.relay_world import a_relay
from tests.journeys.box_process import PROGRAM, BoxProcess, clean_environ, found_box, venuebox
from tests.journeys.relay_process import RelayProcess
from tests.ports import kept_port
from tests.unit.tls.test_importing import a_certificate, pem_of
from web.relay import router

NAME = "box.example"
PATIENCE = 60.0
ADDRESS = next(text for text in own_addresses() if ":" not in text)
GUEST = {"name": "Salma Bennani", "phone": "+212600000001", "notes": "près de la fontaine"}


@dataclass
class Outside:
    """A caller outside who trusts the box's public certificate."""

    at: tuple[str, int]
    trusted: ssl.SSLContext
    keys: dict[str, str]
    name: str = NAME

    def ask(self, method, path, body=None, headers=None, key="live"):
        """Return the status and the JSON object of the answer. Raises OSError if there is none."""
        sent = {"Content-Type": "application/json", "Host": self.name}
        sent |= {"Authorization": f"Bearer {self.keys[key]}"} if key else {}
        connection = http.client.HTTPConnection(*self.at)
        plain = socket.create_connection(self.at, timeout=10)
        with closing(plain), self.trusted.wrap_socket(plain, server_hostname=self.name) as secure:
            connection.sock = secure
            connection.request(method, path, body and json.dumps(body), sent | (headers or {}))
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")

    def is_reached(self):
        """Whether the box answers."""
        try:
            return self.ask("GET", "/health", key=None)[0] == 200
        except OSError:
            return False

    def wish(self, number=0):
        """A booking that the box accepts."""
        _, venue = self.ask("GET", "/v1/venue")
        day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 3 * 86_400))
        return {"tableId": venue["tables"][number]["id"], "date": day, "guests": 2,
                "idempotencyKey": f"relay-{number}", "customer": GUEST}  # fmt: skip

    def book(self, wish):
        """Book; return the reservation."""
        status, made = self.ask("POST", "/v1/reservations", wish)
        assert status == 201, made
        return made


def until(is_so, what):
    """Wait until it is so; the time that it takes is not judged."""
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends, what
        time.sleep(0.1)


@dataclass
class Venue:
    """A box with a public certificate, and who trusts it."""

    box: BoxProcess
    founded: object
    trusted: ssl.SSLContext

    def outside(self, port):
        return Outside((ADDRESS, port), self.trusted, self.founded.keys)

    def direct(self):
        """A caller in the house, who reaches the same certificate without the relay."""
        return self.outside(int(self.box.settings["VENUEBOX_SERVER_TLS_PORT"]))

    def reservations(self):
        return self.direct().ask("GET", "/v1/reservations")[1]

    def join(self, code):
        venuebox("relay", "join", code, data=self.founded.data)

    def alerts(self):
        """The names of the active alerts."""
        with closing(open_for_command(self.founded.data / "live.db")) as connection:
            return {alert.name for alert in list_alerts(Reader(connection, None, None))}

    def doctor(self):
        """The status of each check of `doctor`."""
        done = subprocess.run(
            [PROGRAM, "doctor", "--json", "--data", self.founded.data],
            capture_output=True, text=True, check=False, env=clean_environ(self.box.settings),
        )  # fmt: skip
        return {check["name"]: check["status"] for check in json.loads(done.stdout)["checks"]}


@pytest.fixture
def venue(tmp_path):
    founded = found_box(tmp_path)
    key = ec.generate_private_key(ec.SECP256R1())
    pem = a_certificate(key, days=3650, names=(NAME,))
    (tmp_path / "chain.pem").write_bytes(pem)
    (tmp_path / "key.pem").write_bytes(pem_of(key))
    files = ("--cert", str(tmp_path / "chain.pem"), "--key", str(tmp_path / "key.pem"))
    box = BoxProcess(founded.data, log=tmp_path / "box.log")
    box.port, secure = kept_port(box), kept_port(box)
    box.settings |= {
        "VENUEBOX_SERVER_TLS_PORT": str(secure), "VENUEBOX_SERVER_MDNS": "false",
        "VENUEBOX_SERVER_APP_URL": f"https://{NAME}",
    }  # fmt: skip
    box.spawn("--data", str(founded.data), "--host", ADDRESS, "--port", str(box.port))
    try:
        box.wait_until_ready()
        venuebox("tls", "import", *files, data=founded.data)
        yield Venue(box, founded, ssl.create_default_context(cadata=pem.decode()))
    finally:
        box.kill()


@pytest.fixture
def relay(tmp_path):
    with RelayProcess(tmp_path / "relay", ADDRESS, log=tmp_path / "relay.log") as process:
        yield process


@pytest.fixture
def outside(venue, relay):
    """A caller who reaches the box through the relay."""
    venue.join(relay.invite(NAME))  # the box runs: it dials at once
    found = venue.outside(relay.ports["tls"])
    until(found.is_reached, "the box is not reached through the relay")
    return found


def test_a_booking_through_the_relay_survives_the_relays_death(venue, relay, outside):
    wish = outside.wish()
    made = outside.book(wish)
    assert made["guestAccessUrl"].startswith(f"https://{NAME}/access/")

    relay.kill()
    assert not outside.is_reached()
    assert venue.direct().is_reached()
    relay.start()
    until(outside.is_reached, "the box does not come back after the relay's restart")

    status, again = outside.ask("POST", "/v1/reservations", wish)
    assert (status, again["serviceReservationId"]) == (200, made["serviceReservationId"])


def test_a_box_that_restarts_is_reached_again(venue, outside):
    venue.box.stop()
    assert not outside.is_reached()
    venue.box.spawn(
        "--data", str(venue.founded.data), "--host", ADDRESS, "--port", str(venue.box.port)
    )
    venue.box.wait_until_ready()

    until(outside.is_reached, "the restarted box is not reached")


def test_a_revoked_box_is_cut_and_says_so_until_it_joins_again(venue, relay, outside):
    relay.revoke(NAME)
    until(lambda: not outside.is_reached(), "the revoked box is still reached")
    until(lambda: "relay_revoked" in venue.alerts(), "no alert")
    assert venue.doctor()["conditions"] == "warn"
    assert relay.names() == []

    venue.join(relay.invite(NAME))

    until(outside.is_reached, "the box is not reached with its new key")
    until(lambda: not venue.alerts(), "the alert stays")
    file = access_file(venue.founded.data)
    assert Access.load(file).name == NAME
    assert file.stat().st_mode & 0o077 == 0
    relay.stop()


def test_a_box_that_leaves_is_not_reached(venue, relay, outside):
    venuebox("relay", "leave", data=venue.founded.data)

    until(lambda: not outside.is_reached(), "the box is still reached")
    assert not access_file(venue.founded.data).exists()
    assert relay.names() == [NAME]


def test_a_caller_through_the_relay_is_from_outside_whatever_he_claims(venue, outside):
    token = {"Host": "127.0.0.1", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "https"}

    assert outside.ask("GET", "/metrics", headers=token, key=None)[0] == 404
    assert outside.ask("GET", "/metrics", key=None)[0] == 404


def test_a_caller_through_the_relay_has_the_rate_of_his_own_address(venue, relay):
    venue.box.settings |= {"VENUEBOX_API_UNAUTHENTICATED_PER_MINUTE": "3"}
    venue.box.stop()
    venue.box.spawn(
        "--data", str(venue.founded.data), "--host", ADDRESS, "--port", str(venue.box.port)
    )
    venue.box.wait_until_ready()
    venue.join(relay.invite(NAME))
    outside = venue.outside(relay.ports["tls"])
    until(outside.is_reached, "the box is not reached through the relay")

    statuses = [
        outside.ask("GET", "/v1/venue", headers={"X-Forwarded-For": f"198.51.100.{n}"}, key=None)[0]
        for n in range(4)
    ]

    assert statuses == [401, 401, 401, 429]
    # The relay and this caller in the house have the same address here, and are counted apart.
    assert venue.direct().ask("GET", "/v1/venue", key=None)[0] == 401


def test_the_commands_refuse_what_cannot_be(venue, relay):
    def refused(*argv, data):
        done = subprocess.run(
            [PROGRAM, "relay", *argv, "--data", data], capture_output=True, text=True, check=False,
            env=clean_environ(),
        )  # fmt: skip
        return done.returncode == 1 and done.stderr.startswith("venuebox: ")

    assert refused("leave", data=venue.founded.data)
    assert refused("join", "vbrelay-half", data=venue.founded.data)
    assert refused("revoke", NAME, data=relay.data)
    assert refused("invite", "no name", data=relay.data)
    assert refused("invite", NAME, data=venue.founded.data)
    assert refused("serve", "--address", ADDRESS, data=relay.data)
    code = relay.invite(NAME)
    relay.stop()
    assert refused("join", code, data=venue.founded.data)
    relay.start()
    venue.join(code)
    assert refused("join", code, data=venue.founded.data)


class Spy:
    """A relay that keeps what it passes on, and may change it."""

    def __init__(self):
        self.passed, self.change = bytearray(), lambda data: data

    async def open_channel(self, *args):
        reader, writer = await self.real(*args)
        read, write = reader.read, writer.write

        async def read_and_keep(count):
            data = self.change(await read(count))
            self.passed += data
            return data

        def keep_and_write(data):
            self.passed += data
            write(self.change(data))

        reader.read, writer.write = read_and_keep, keep_and_write
        return reader, writer

    real = staticmethod(router.open_channel)


async def test_a_hostile_relay_reads_nothing_and_books_nothing(venue, tmp_path, monkeypatch):
    spy = Spy()
    monkeypatch.setattr(router, "open_channel", spy.open_channel)
    async with a_relay(tmp_path, host=ADDRESS) as hostile:
        await asyncio.to_thread(venue.join, hostile.invite(NAME).encode())
        outside = venue.outside(hostile.tls)
        await asyncio.to_thread(until, outside.is_reached, "not reached")

        wish = await asyncio.to_thread(outside.wish)
        made = await asyncio.to_thread(outside.book, wish)
        told = [*GUEST.values(), made["serviceReservationId"], made["accessCode"],
                made["guestAccessUrl"][-16:], outside.keys["live"], "Bearer"]  # fmt: skip
        assert [word for word in told if word.encode() in spy.passed] == []
        assert NAME.encode() in spy.passed

        def flip(data):
            return data[:-1] + bytes([data[-1] ^ 1]) if len(data) > 400 else data

        before = await asyncio.to_thread(venue.reservations)
        other = await asyncio.to_thread(outside.wish, 1)
        spy.change = flip
        with pytest.raises(OSError):  # noqa: PT011 - TLS or the connection notices it
            await asyncio.to_thread(outside.book, other)
        assert await asyncio.to_thread(venue.reservations) == before

        # It can claim neither loopback nor another name, and may not open other channels.
        connection = hostile.boxes.connection(NAME)
        for name, port, caller in ((NAME, 443, "127.0.0.1"), (NAME, 22, "203.0.113.9"),
                                   ("x.example", 443, "203.0.113.9")):  # fmt: skip
            with pytest.raises(router.asyncssh.ChannelOpenError):
                await spy.real(connection, name, port, (caller, 5))


def test_serve_does_not_load_the_ssh_library_without_a_relay():
    code = (
        "import sys, web.serve, web.main; web.main.make_parser(); print('asyncssh' in sys.modules)"
    )
    done = subprocess.run(
        [PROGRAM.with_name("python"), "-c", code], capture_output=True, text=True, check=True,
        env=clean_environ(),
    )  # fmt: skip

    assert done.stdout.strip() == "False"
