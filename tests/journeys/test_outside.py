"""From a new box behind NAT to a guest's phone: setup, relay, certificate, partner, failures.

The venue has a box, the owner's laptop and a phone at the door. The internet has the relay
(Debian's sshd and HAProxy), the ACME authority, the name server and a partner. The guest's phone is
on mobile data and trusts only the authority.
"""

import asyncio
import http.client
import json
import os
import shlex
import socket
import ssl
import struct
import subprocess
import time
import uuid
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.clock import SystemClock
from appliance.tls.authority import Names, make_authority, make_leaf
from tests.browser.chromium import EXECUTABLE, running_chromium
from tests.journeys.acme_authority import Authority
from tests.journeys.box_process import BoxProcess, venuebox
from tests.journeys.partner_side import Receiver
from tests.journeys.relay_server import RelayServer
from tests.namespaces import Venue, may_build_a_venue, run_in, within

NAME, PARTNER = "box.example", "partner.example"
PORT, TLS_PORT = 8080, 8443
PASSWORD = "le thé est servi à minuit"
GUEST = {"name": "Salma Bennani", "phone": "+212600000001", "notes": "by the fountain"}
HOOK_PORT = 8443
PATIENCE = 300.0  # until a delivery is tried again
TWO_MINUTES = 120
SECONDS_A_CLICK, SECONDS_A_FIELD = 3, 6  # seconds for reading, looking and typing
PHONE = {"viewport": {"width": 390, "height": 844}, "locale": "fr-FR"}
_ALL, _BUFFER_SIZE = 3, 33  # ETH_P_ALL, SO_RCVBUFFORCE
_PACKETS, _STATISTICS = 263, 6  # SOL_PACKET, PACKET_STATISTICS
__test__ = may_build_a_venue()


@dataclass
class Answer:
    status: int
    body: bytes
    location: str | None

    @property
    def json(self):
        return json.loads(self.body)


def call(at, trusted, name, method, path, body=None, token=None):
    """Call the box at this address, over https if a certificate is `trusted`."""
    connection = http.client.HTTPConnection(name, at[1])
    headers = {"Host": name, "Accept": "text/html", "Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    plain = socket.create_connection(at, timeout=10)
    with closing(trusted.wrap_socket(plain, server_hostname=name) if trusted else plain) as ready:
        connection.sock = ready
        connection.request(method, path, body and json.dumps(body), headers)
        response = connection.getresponse()
        return Answer(response.status, response.read(), response.headers["Location"])


def until(is_so, what):
    """Wait until a condition is true. Return the seconds, which are only printed."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() < began + PATIENCE, what
        time.sleep(0.1)
    return time.monotonic() - began


class Capture:
    """All packets that pass through a network, including those on its loopback."""

    def __init__(self, network):
        self.packets = bytearray()
        self._network = network

    def __enter__(self):
        self._socket = within(self._network, self._listen)
        asyncio.get_running_loop().add_reader(self._socket, self._read)
        return self

    def __exit__(self, *_):
        """Stop. AssertionError if a packet was missed."""
        self._read()
        asyncio.get_running_loop().remove_reader(self._socket)
        with self._socket:
            _, missed = struct.unpack("II", self._socket.getsockopt(_PACKETS, _STATISTICS, 8))
        assert missed == 0

    @staticmethod
    def _listen():
        listening = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        listening.setsockopt(socket.SOL_SOCKET, _BUFFER_SIZE, 64 << 20)
        listening.setblocking(False)
        return listening

    def _read(self):
        with suppress(BlockingIOError):
            while True:
                self.packets += self._socket.recv(1 << 17)

    def find(self, words):
        """Return the words that occur in the packets."""
        return {word for word in words if word.encode() in self.packets}


class Person:
    """A person who uses a page. Counts clicks and filled fields."""

    def __init__(self, page):
        self.page, self.clicks, self.fields = page, 0, 0

    async def click(self, selector):
        self.clicks += 1
        await self.page.click(selector)

    async def fill(self, selector, text):
        self.fields += 1
        await self.page.fill(selector, text)

    @property
    def seconds(self):
        """Return how long a person needs for the counted clicks and fields, in seconds."""
        return self.clicks * SECONDS_A_CLICK + self.fields * SECONDS_A_FIELD

    async def wait(self, selector):
        await self.page.wait_for_selector(selector)


@pytest.fixture
def venue():
    with Venue(f"vbo{os.getpid() % 10**6}") as built:
        yield built


@pytest.fixture
def resolver(venue, tmp_path):
    path = tmp_path / "resolv.conf"
    path.write_text(f"nameserver {venue.STRANGER}\n")
    return path


@pytest.fixture
def authority(venue, tmp_path):
    """An ACME authority on the usual ports, whose name server resolves names to the relay."""
    authority = Authority(tmp_path, venue.STRANGER, host=venue.STRANGER)
    authority.dns, authority.http, authority.tls = 53, 80, 443
    try:
        within(venue.stranger, authority.start)
        told = partial(authority.tell_dns, "add-a", host=PARTNER, addresses=[venue.PARTNER])
        within(venue.stranger, told)
        yield authority
    finally:
        authority.stop()


@pytest.fixture
def relay(venue, resolver, tmp_path):
    folder = tmp_path / "relay"
    folder.mkdir()
    with RelayServer(folder, venue.stranger, venue.STRANGER, resolver) as server:
        yield server


@pytest.fixture
def partner(tmp_path):
    """Return the TLS context of the partner's server, and its authority (PEM)."""
    now = SystemClock().now()
    authority = make_authority("Partner", Names((PARTNER,), ()), now)
    (tmp_path / "partner.pem").write_bytes(make_leaf(authority, Names((PARTNER,), ()), now).pem())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "partner.pem")
    return SimpleNamespace(tls=context, root=authority.certificate.public_bytes(Encoding.PEM))


@pytest.fixture
def box(venue, authority, resolver, partner, tmp_path):
    """A box without an owner that trusts the public authorities of the test's internet."""
    roots = tmp_path / "roots.pem"
    roots.write_bytes(within(venue.stranger, authority.root).encode() + partner.root)
    settings = {
        "VENUEBOX_ACME_DIRECTORY": authority.directory,  # in place of Let's Encrypt
        "VENUEBOX_ACME_AGREE_TERMS": "true",
        "VENUEBOX_ACME_CA_FILE": str(authority.ca_file),
        "VENUEBOX_API_UNAUTHENTICATED_PER_MINUTE": "2",
        "SSL_CERT_FILE": str(roots),
    }
    wrapper = run_in(venue.box, resolver)
    box = BoxProcess(tmp_path / "box", log=tmp_path / "box.log", settings=settings, wrapper=wrapper)
    try:
        listen = ("--host", "0.0.0.0", "--port", str(PORT))  # noqa: S104 - in a network of its own
        box.spawn("--data", str(box.data), *listen)
        box.wait_until_ready()
        yield box
    finally:
        box.kill()


def browser_in(home, network, resolver, root=None):
    """Write a program that runs Chromium in this network. `root` (PEM) is trusted in `home`."""
    store = home / ".pki" / "nssdb"
    store.mkdir(parents=True)
    certutil = partial(subprocess.run, check=True, cwd=home)
    certutil(["certutil", "-N", "--empty-password", "-d", f"sql:{store}"])
    if root:
        (home / "root.pem").write_text(root)
        certutil(["certutil", "-A", "-d", f"sql:{store}", "-n", "root", "-t", "C,,",
                  "-i", "root.pem"])  # fmt: skip
    program = home / "chromium"
    program.write_text(
        f'#!/bin/sh\nexec {shlex.join(run_in(network, resolver))} {EXECUTABLE} "$@"\n'
    )
    program.chmod(0o700)
    return program


@asynccontextmanager
async def a_page(chromium, program, **options):
    """Open a page of the browser that `program` starts."""
    environ = {**os.environ, "HOME": str(program.parent)}
    browser = await chromium.launch(str(program), env=environ)
    try:
        page = await browser.new_page(**options)
        page.set_default_timeout(60_000)
        yield page
    finally:
        await browser.close()


async def set_up(owner, link):
    """Complete the setup: the owner's account, the venue, its tables and its hours."""
    owner.clicks += 3  # the link, and "Advanced" and "Proceed" in the browser's warning
    await owner.page.goto(link)
    await owner.fill("[name=name]", "Yasmine")
    await owner.fill("[name=password]", PASSWORD)
    await owner.click("form button[type=submit]")
    await owner.fill("[name=name]", "Riad Atlas")
    await owner.click("main form[action$='/venue/rules'] button")
    await owner.wait("nav.setup a.behind[href='/portal/venue/rules']")
    await owner.click("nav.setup a[href='/portal/venue']")
    await owner.fill("[name=list]", "T1-T4")
    await owner.click("main form[action$='/venue/preview'] button")
    await owner.click("main form[action$='/venue/tables'] button")
    await owner.click("nav.setup a[href='/portal/venue/slots']")
    await owner.fill("[name=start]", "19:30")
    await owner.fill("[name=end]", "22:00")
    await owner.click("main form[action$='/venue/slots'] button")
    await owner.wait("nav.setup a.behind[href='/portal/venue/slots']")


async def join_the_relay(owner, relay, is_certified):
    """Complete the step "Address": send the key, paste the line, agree to the terms, test."""
    await owner.click("nav.setup a[href='/portal/box/address']")
    await owner.click("[data-copy='#relay-key']")
    key = await owner.page.text_content("#relay-key")
    line = await asyncio.to_thread(relay.add, NAME, key)  # the relay's operator does this
    await owner.fill("[name=line]", line)
    await owner.click("main form[action$='/address/relay'] [name=agree]")
    await owner.click("main form[action$='/address/relay'] button")
    await owner.wait("main form[action$='/address/test'] button")
    await asyncio.to_thread(until, is_certified, "no certificate by way of the relay")
    await owner.click("main form[action$='/address/test'] button")
    await owner.wait("#test .checks li.ok")


async def create_a_key(owner):
    """Create the partner's key, which the owner sends to the partner."""
    await owner.click("nav.areas a[href='/portal/integrations']")
    await owner.click("a[href='/portal/integrations/keys/new']")
    await owner.fill("[name=name]", "Partenaire")
    await owner.click("main form[action$='/integrations/keys'] button")
    return await owner.page.text_content("#secret")


async def cancel(page, reservation_id):
    """Cancel a reservation in the portal."""
    await page.goto(f"/portal/reservations/{reservation_id}")
    button = page.locator("form[action$='/cancel'] button")
    await page.locator("details.sure", has=button).locator("summary").click()
    await button.click()
    await button.wait_for(state="detached")


class Door:
    """A phone at the door, which uses the box's address on the LAN."""

    def __init__(self, venue, box):
        at_home = partial(within, venue.phone, call)
        der = at_home((venue.BOX, PORT), None, venue.BOX, "GET", "/trust/ca.crt").body
        own = ssl.create_default_context(cadata=ssl.DER_cert_to_PEM_cert(der))
        self._ask = partial(at_home, (venue.BOX, TLS_PORT), own, venue.BOX)
        made = ("--environment", "live", "--name", "Entrée", "--json")
        self._token = json.loads(venuebox("terminal", "create", *made, data=box.data))["token"]

    def evening(self):
        return self._ask("GET", "/terminal/v1/me", None, self._token).json["evening"]

    def scan(self, code):
        body = {"scanId": str(uuid.uuid4()), "code": code}
        return self._ask("POST", "/terminal/v1/scans", body, self._token).json["result"]


class Internet:
    """Clients on the internet: a partner and a phone on mobile data."""

    def __init__(self, venue, root):
        self.trusted = ssl.create_default_context(cadata=root)
        self.from_partner = self._calling(venue, venue.stranger)
        self.from_phone = self._calling(venue, venue.guest)
        at_http = (venue.STRANGER, 80), None, NAME
        self.in_plain = partial(within, venue.guest, call, *at_http)

    def _calling(self, venue, network):
        return partial(within, network, call, (venue.STRANGER, 443), self.trusted, NAME)

    def is_reached(self):
        try:
            return self.from_phone("GET", "/health").status == 200
        except OSError:
            return False

    def book(self, key, table, day):
        """Book as the partner; return the reservation."""
        tables = self.from_partner("GET", "/v1/venue", None, key).json["tables"]
        wish = {"tableId": tables[table]["id"], "date": day, "guests": 2,
                "idempotencyKey": f"outside-{table}", "customer": GUEST}  # fmt: skip
        made = self.from_partner("POST", "/v1/reservations", wish, key)
        assert made.status == 201, made.body
        return made.json

    def register(self, key):
        """Register the partner's receiver; return its secret."""
        url = f"https://{PARTNER}:{HOOK_PORT}/live"
        made = self.from_partner("POST", "/v1/webhooks", {"url": url}, key)
        assert made.status == 201, made.body
        return made.json["secret"]

    def check_tries(self):
        """Check that the phone uses up only the attempts of its own address."""
        tries = [self.from_phone("GET", "/v1/venue").status for _ in range(3)]
        assert tries == [401, 401, 429]
        assert self.from_partner("GET", "/v1/venue").status == 401

    def check_plain(self):
        """Check that plain http ends at the relay."""
        plain = self.in_plain("GET", "/access/plain")
        assert (plain.status, plain.location) == (308, f"https://{NAME}/access/plain")


def words_of(booking):
    """Return the words of a booking that only the box, the partner and the guest may know."""
    token = booking["guestAccessUrl"].removeprefix(f"https://{NAME}/access/")
    return {booking["serviceReservationId"], booking["accessCode"], token}


@pytest.mark.slow(90)
@pytest.mark.network
async def test_a_new_box_can_be_reached_from_outside_after_two_minutes_of_setup(
    venue, authority, relay, box, resolver, partner, tmp_path
):
    root = within(venue.stranger, authority.root)
    internet = Internet(venue, root)
    link = next(word for word in " ".join(box.lines).split() if word.startswith("https:"))
    laptop = browser_in(tmp_path / "laptop", venue.phone, resolver)
    mobile = browser_in(tmp_path / "mobile", venue.guest, resolver, root)
    at_home = {"ignore_https_errors": True, "base_url": f"https://{venue.BOX}:{TLS_PORT}"}
    listener = within(venue.stranger, socket.create_server, (venue.PARTNER, HOOK_PORT))
    async with (
        running_chromium() as chromium,
        a_page(chromium, laptop, **at_home) as desk,
        a_page(chromium, mobile, **PHONE) as phone,
        Receiver().running(listener, partner.tls) as receiver,
    ):
        with Capture(venue.stranger) as capture:
            owner, began = Person(desk), time.monotonic()
            await set_up(owner, link)
            await join_the_relay(owner, relay, internet.is_reached)
            key = await create_a_key(owner)
            door = await asyncio.to_thread(Door, venue, box)
            evening = await asyncio.to_thread(door.evening)
            made = await asyncio.to_thread(internet.book, key, 0, evening)
            assert (await phone.goto(made["guestAccessUrl"])).status == 200
            took = time.monotonic() - began
            print(f"\n{owner.clicks} clicks, {owner.fields} fields: {owner.seconds} s of a person, "
                  f"{took:.1f} s of the machine")  # fmt: skip
            assert await phone.get_attribute("[data-pass]", "data-pass")
            assert owner.seconds < TWO_MINUTES

            receiver.secrets["live"] = secret = await asyncio.to_thread(internet.register, key)
            second = await asyncio.to_thread(internet.book, key, 1, evening)
            told = await receiver.wait_for("reservation.created", second["serviceReservationId"])
            assert told.signature_held
            internet.check_tries()

            venue.cut_the_line()
            assert not await asyncio.to_thread(internet.is_reached)
            assert await asyncio.to_thread(door.scan, made["accessCode"]) == "checked_in"
            await cancel(desk, second["serviceReservationId"])
            venue.restore_the_line()
            back = await asyncio.to_thread(until, internet.is_reached, "not back with the line")
            relay.kill()
            assert not await asyncio.to_thread(internet.is_reached)
            relay.start()
            again = await asyncio.to_thread(until, internet.is_reached, "not back with the relay")
            print(f"back {back:.1f} s after the line, {again:.1f} s after the relay")

            third = await asyncio.to_thread(internet.book, key, 2, evening)
            assert (await phone.goto(third["guestAccessUrl"])).status == 200
            for event, booking in (("created", third), ("cancelled", second)):
                reservation = booking["serviceReservationId"]
                told = await receiver.wait_for(
                    f"reservation.{event}", reservation, seconds=PATIENCE
                )
                assert told.signature_held
            internet.check_plain()

    public = {NAME, "GET /access/plain"}  # in the TLS hello, and in plain http
    secrets = {*GUEST.values(), key, secret, "Bearer", "X-Service-Signature"}
    secrets |= words_of(made) | words_of(second) | words_of(third)
    assert capture.find(public | secrets) == public
