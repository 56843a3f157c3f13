"""The box checks its public address from outside: name, certificate, proxy and box."""

from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from appliance.checks.network import (
    PROOF_PATH,
    OutsideWatch,
    check_outside,
    is_checked,
)
from appliance.core.tokens import Keyring
from appliance.webhooks.client import OwnAuthority
from tests.app.portal.people import a_person
from tests.conftest import running_box, with_settings
from tests.promises.webhooks.test_certificates import Certificate
from web.monitoring import OUTSIDE

NONCE = "0123456789abcdef" * 2
PROXIED = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "9.9.9.9"}


@pytest.fixture(scope="module")
def authority():
    return Certificate("Own authority", authority=True)


@pytest.fixture
async def running(tmp_path, clock):
    proxies = {"trusted_proxies": ("127.0.0.1",)}
    async with running_box(tmp_path, clock, with_settings(server=proxies)) as found:
        yield found


class Proxy:
    """A reverse proxy with TLS in front of the box, which a test can misconfigure."""

    def __init__(self, running):
        self.running, self.url = running, ""
        self.headers, self.answer = PROXIED, None

    async def pass_on(self, request):
        if self.answer is not None:
            status, body = self.answer
            return web.Response(status=status, body=body)
        async with self.running.client.get(request.path, headers=self.headers) as response:
            return web.Response(status=response.status, body=await response.read())

    @asynccontextmanager
    async def at(self, certificate):
        app = web.Application()
        app.router.add_get("/{path:.*}", self.pass_on)
        server = TestServer(app, scheme="https")
        await server.start_server(ssl=certificate.context())
        try:
            self.url = f"https://localhost:{server.port}"
            yield self
        finally:
            await server.close()


@pytest.fixture
async def proxy(running, authority):
    async with Proxy(running).at(Certificate("localhost", issuer=authority)) as found:
        yield found


@pytest.mark.parametrize(
    ("answer", "headers", "status"),
    [
        (None, PROXIED, "ok"),
        (None, PROXIED | {"X-Forwarded-Proto": "http"}, "fail"),
        (None, PROXIED | {"Host": "other.example"}, "fail"),  # 421
        ((502, b"Bad Gateway"), PROXIED, "fail"),
        ((200, b"<h1>Parked domain</h1>"), PROXIED, "fail"),
        ((200, b'{"proof": "00"}'), PROXIED, "fail"),
        ((200, '{"proof": "é"}'.encode()), PROXIED, "fail"),
        ((200, b'{"proof": "\\ud800"}'), PROXIED, "fail"),
        ((200, b'{"proof":' + b"[" * 990), PROXIED, "fail"),
        ((301, b""), PROXIED, "fail"),
    ],
)
async def test_each_response_from_the_public_address_gives_the_expected_result(
    running, proxy, authority, answer, headers, status
):
    proxy.answer, proxy.headers = answer, headers
    trust = OwnAuthority(authority.pem)
    found = await check_outside(proxy.url, running.live.keyring, NONCE, trust)
    assert found.status == status


async def test_another_box_cannot_answer_the_challenge_of_this_one(proxy, authority):
    found = await check_outside(
        proxy.url, Keyring(bytes(32), "live"), NONCE, OwnAuthority(authority.pem)
    )
    assert found.status == "fail"


@pytest.mark.parametrize(
    "shown",
    [{"name": "other.example"}, {"name": "localhost", "until": 2001}, {"name": "localhost"}],
)
async def test_a_certificate_that_browsers_reject_is_named(
    running, authority, tls_looks_at_dates, shown
):
    issuer = authority if shown != {"name": "localhost"} else None
    async with Proxy(running).at(Certificate(**shown, issuer=issuer)) as proxy:
        trust = OwnAuthority(authority.pem)
        found = await check_outside(proxy.url, running.live.keyring, NONCE, trust)
    assert (found.status, found.finding.values["url"]) == ("fail", proxy.url)
    assert found.finding.values["trouble"]


async def test_an_unknown_name_is_a_failure_and_a_timeout_a_warning_about_the_router(running):
    keyring = running.live.keyring
    nowhere = await check_outside("https://no-such-name.invalid", keyring, NONCE)
    silent = await check_outside("https://localhost:9", keyring, NONCE)
    assert (nowhere.status, silent.status) == ("fail", "warn")


@pytest.mark.parametrize("nonce", ["", "0" * 31, "0" * 33, "A" * 32, "0" * 30 + "%0a"])
async def test_only_a_well_formed_nonce_gets_a_proof(running, nonce):
    async with running.client.get(f"{PROOF_PATH}/{nonce}") as response:
        assert response.status == 404


class WatchAt(OutsideWatch):
    """A watch that also checks addresses of this machine, which are not public."""

    url = ""


def a_watch(running, authority, url):
    watch = WatchAt(running.live, OwnAuthority(authority.pem))
    watch.url = url
    return watch


async def test_a_fault_outside_starts_at_its_first_failed_check(running, proxy, authority, clock):
    watch, proxy.answer = a_watch(running, authority, proxy.url), (502, b"")
    await watch.check()
    began = clock.now()
    clock.advance(600)
    await watch.check()
    assert watch.latest.since == began
    proxy.answer = None
    await watch.check()
    assert (watch.latest.status, watch.latest.since) == ("ok", None)


async def test_a_public_address_is_checked_every_ten_minutes(running, proxy, authority):
    def due():
        return running.live.database.peek(watch.job.next_due)

    watch, now = a_watch(running, authority, ""), running.clock.now()
    assert due() == now + 60_000
    await watch.check()
    assert due() is None
    watch.url = proxy.url
    assert due() == now + 600_000


@pytest.mark.parametrize(
    ("url", "checked"),
    [("https://riad.example", True), ("http://riad.example", False), ("", False),
     ("https://192.168.1.20", False), ("https://riad.local", False)],
)  # fmt: skip
def test_only_a_public_https_address_is_checked(url, checked):
    assert is_checked(url) is checked


async def test_the_portal_shows_the_latest_result(running, proxy, authority):
    owner, watch = await a_person(running), running.app[OUTSIDE]
    watch.__class__ = WatchAt
    watch.url, watch._trust = proxy.url, OwnAuthority(authority.pem)
    proxy.answer = (502, b"")
    status, page, _headers = await owner.get("/portal/box?again=1")
    assert (status, proxy.url in page) == (200, True)
