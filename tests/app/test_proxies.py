"""Unknown and silent proxies raise an alert; only a trusted proxy's headers count."""

import asyncio
import tomllib

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from appliance.doctor.check import list_observations
from appliance.http.request import caller_key, is_private, networks_of, peer_of
from tests.app.portal.people import a_person
from tests.conftest import opened_box, running_box, with_settings
from web.monitoring import PROXY_SILENT, PROXY_UNKNOWN, ProxyWatch

PROXY, LOOPBACK, STRANGER = "192.168.1.10", "127.0.0.1", "9.9.9.9"
PUBLIC, INSIDE = "riad.example", "192.168.1.20:8080"
FOR, PROTO = {"X-Forwarded-For": "9.9.9.9"}, {"X-Forwarded-Proto": "https"}
BROWSER = {"Sec-Fetch-Mode": "navigate"}
WHO = {"unnamed": (), "named": (PROXY, LOOPBACK), "with others": ("10.0.0.0/8",)}


class Watched:
    """A box with a public address, and its ProxyWatch."""

    def __init__(self, box):
        self.box = box
        self.watch = ProxyWatch(box)

    async def see(self, remote, host, headers, scheme="http"):
        request = make_mocked_request("GET", "/book", headers={"Host": host, **headers})
        await self.watch._look(request.clone(remote=remote, scheme=scheme), web.Response())
        await asyncio.gather(*self.watch._writing)
        return self.told()

    def told(self):
        return [(c.name, c.subject) for c in self.box.live.database.peek(list_observations)]


@pytest.fixture
async def watched(request, tmp_path, clock):
    settings = with_settings(
        server={"app_url": f"https://{PUBLIC}", "trusted_proxies": WHO[request.param]}
    )
    async with opened_box(tmp_path, clock, settings) as box:
        yield Watched(box)


@pytest.mark.parametrize(
    ("watched", "remote", "host", "headers", "scheme", "told"),
    [
        ("unnamed", LOOPBACK, PUBLIC, FOR | PROTO, "http", PROXY_UNKNOWN),  # a tunnel on the box
        ("unnamed", PROXY, PUBLIC, FOR, "http", PROXY_UNKNOWN),
        ("unnamed", PROXY, INSIDE, PROTO, "http", PROXY_UNKNOWN),
        ("unnamed", PROXY, INSIDE, {"Forwarded": "for=9.9.9.9"}, "https", PROXY_UNKNOWN),
        ("unnamed", LOOPBACK, PUBLIC, {}, "http", PROXY_UNKNOWN),  # only the browser's own headers
        ("unnamed", PROXY, INSIDE, BROWSER, "http", PROXY_UNKNOWN),  # nginx with proxy_pass alone
        ("unnamed", PROXY, INSIDE, {}, "http", None),  # a laptop of the venue
        ("unnamed", LOOPBACK, "localhost:8080", BROWSER, "http", None),
        ("unnamed", LOOPBACK, PUBLIC, BROWSER, "https", None),
        # A forged header through a port forward.
        ("unnamed", STRANGER, PUBLIC, FOR | PROTO, "https", None),
        ("named", PROXY, PUBLIC, {}, "http", PROXY_SILENT),
        ("named", LOOPBACK, PUBLIC, {}, "http", PROXY_SILENT),
        ("named", PROXY, PUBLIC, FOR, "https", None),
        ("named", PROXY, PUBLIC, FOR | PROTO, "http", None),
        ("named", LOOPBACK, "127.0.0.1:8080", {}, "http", None),  # a browser on the box
        ("named", PROXY, INSIDE, {}, "http", None),
    ],
    indirect=["watched"],
)
async def test_a_proxy_that_is_not_named_or_named_and_silent_is_told(
    watched, remote, host, headers, scheme, told
):
    found = await watched.see(remote, host, headers, scheme)
    assert found == ([(told, remote)] if told else [])


@pytest.mark.parametrize("watched", ["named"], indirect=True)
async def test_once_it_says_who_asks_it_is_told_no_more(watched, clock):
    assert await watched.see(PROXY, PUBLIC, {})
    assert await watched.see(PROXY, PUBLIC, FOR | PROTO)  # at most once a minute
    clock.advance(61)
    assert await watched.see(PROXY, PUBLIC, FOR | PROTO) == []
    clock.advance(61)
    assert await watched.see(PROXY, PUBLIC, {})


@pytest.mark.parametrize("watched", ["unnamed", "with others"], indirect=True)
async def test_the_line_that_mends_it_is_a_setting_as_it_is_written(watched):
    await watched.see(PROXY, PUBLIC, FOR)
    [noted] = watched.box.live.database.peek(list_observations)
    named = watched.box.settings.server.trusted_proxies
    assert tomllib.loads(noted.detail) == {"trusted_proxies": [*named, PROXY]}


async def test_the_portal_shows_it_with_its_line_and_a_restart_forgets_it(tmp_path, clock):
    line = "trusted_proxies = [&quot;127.0.0.1&quot;]"
    settings = with_settings()
    async with running_box(tmp_path, clock, settings) as running:
        owner = await a_person(running)
        async with running.client.get("/health", headers=FOR) as response:
            assert response.status == 200
        assert line in (await owner.get("/portal/box?again=1"))[1]
    named = with_settings(server={"trusted_proxies": ("127.0.0.1",)})
    async with running_box(tmp_path, clock, named) as running:
        assert running.live.database.peek(list_observations) == []


PROXIES = networks_of(["10.0.0.0/8"])


def a_request(*lines, remote="10.0.0.1"):
    request = make_mocked_request("GET", "/", headers=CIMultiDict(lines))
    return request.clone(remote=remote, scheme="http")


@pytest.mark.parametrize(
    ("lines", "peer"),
    [(["203.0.113.9"], "203.0.113.9"), (["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
     (["198.51.100.1", "203.0.113.9, 10.0.0.2"], "203.0.113.9"),
     (["198.51.100.1:1, 203.0.113.9:5555 , 10.0.0.2:80"], "203.0.113.9"),
     (["2001:db8::9"], "2001:db8::9"), (["[2001:db8::9]"], "2001:db8::9"),
     (["[2001:db8::9]:5555, 10.0.0.2"], "2001:db8::9"),
     (["::ffff:203.0.113.9"], "::ffff:203.0.113.9"), ([":80"], "10.0.0.1"), (["[]"], "10.0.0.1"),
     ([], "10.0.0.1")],
)  # fmt: skip
def test_the_nearest_address_before_our_proxies_is_the_callers(lines, peer):
    request = a_request(*(("X-Forwarded-For", line) for line in lines))
    assert peer_of(request, PROXIES) == peer


@pytest.mark.parametrize(
    ("lines", "private"),
    [(["https"], True), (["https", "http"], False), (["http", "https"], True),
     (["a, http"], False)],
)  # fmt: skip
def test_the_last_word_on_the_protocol_is_our_proxys(lines, private):
    request = a_request(*(("X-Forwarded-Proto", line) for line in lines))
    assert is_private(request, PROXIES) is private


def test_a_whole_network_of_one_connection_is_one_caller():
    assert caller_key("2001:db8::1") == caller_key("2001:db8::ffff") == "2001:db8::/64"
    assert caller_key("192.0.2.7") == caller_key("::ffff:192.0.2.7") == "192.0.2.7"
