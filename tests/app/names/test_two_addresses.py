"""A box with a public address: links for guests and partners use it, links for staff and doors use
the local address."""

import re

import pytest
from aiohttp.test_utils import make_mocked_request

from appliance.core.settings import ServerSettings
from appliance.environment import public_base
from appliance.http.request import PRINCIPALS
from tests.app.portal.people import a_person
from tests.builders import a_body
from tests.conftest import running_box, with_settings
from web.hosts import HttpsPolicy
from web.middleware import SECURE

PUBLIC, ADDRESS, AT_HOME = (
    "https://riad.example", "http://192.168.1.20:8080", "https://192.168.1.20:8443"
)  # fmt: skip


@pytest.fixture
async def public(tmp_path, clock):
    """A box with the public address PUBLIC and the local address ADDRESS."""
    settings = with_settings(server={"app_url": PUBLIC})
    async with running_box(tmp_path, clock, settings) as running:
        running.box.move(ADDRESS)
        running.app[SECURE].tls_port = 8443
        yield running


async def test_the_portal_pairs_phones_with_the_lan_address(public):
    owner = await a_person(public)

    form = {"name": "Porte 2", "role": "scan"}
    _, paired, _ = await owner.post("/portal/door/pair", form)
    _, issued, _ = await owner.post("/portal/door/issue", form | {"name": "Tourniquet"})

    assert f"{AT_HOME}/door#pair=" in paired
    assert f"{ADDRESS}/trust" in paired
    assert PUBLIC not in paired
    assert f"{AT_HOME}/terminal/v1" in issued
    assert PUBLIC not in issued


async def test_staff_invitations_use_the_lan_address_and_mention_the_public_one(public):
    owner = await a_person(public)
    _, text, _ = await owner.post("/portal/people", {"name": "Karim", "role": "host"})
    link = re.search(r'id="one-time-link">([^<]+)<', text)[1]
    assert link.startswith(f"{AT_HOME}/portal/welcome#")
    assert f"{PUBLIC}/portal/welcome#" in text


@pytest.mark.parametrize("host", ["192.168.1.20:8080", "riad-atlas.local:8080", "localhost"])
@pytest.mark.parametrize("path", ["/door", "/test/door", "/portal", "/access/x", "/docs"])
async def test_pages_under_a_lan_name_do_not_link_to_the_public_address(public, host, path):
    headers = {"Host": host, "Accept": "text/html"}

    async with public.client.get(path, headers=headers, allow_redirects=False) as response:
        led_to, text = response.headers.get("Location", ""), await response.text()

    assert PUBLIC not in led_to
    if path.endswith("/door"):
        assert f"https://{host.partition(':')[0]}:8443{path}" in text
        assert PUBLIC not in text


async def test_guests_and_partners_get_the_public_address(public):
    _, made, _ = await public.call("POST", "/v1/reservations", json=a_body())

    assert made["guestAccessUrl"].startswith(f"{PUBLIC}/access/")
    assert made["claimUrl"].startswith(f"{PUBLIC}/claim-guest/")


@pytest.mark.parametrize(
    ("remote", "host", "headers", "is_shown"),
    [
        ("192.168.1.50", "192.168.1.20:8443", {}, True),
        ("192.168.1.50", "riad-atlas.local:8443", {}, True),
        ("fd00::5", "[fd00::2]:8443", {}, True),
        ("192.168.1.50", "riad.example", {}, False),  # a router that loops back
        ("203.0.113.9", "riad.example", {}, False),
        ("9.9.9.9", "192.168.1.20:8443", {}, False),  # a forwarded port, and a Host made by hand
        ("127.0.0.1", "localhost:8080", {}, False),  # headers from a tunnel on the box
        ("192.168.1.10", "192.168.1.20:8080", {}, False),  # a trusted proxy
        ("192.168.1.11", "192.168.1.20:8080", {"X-Forwarded-For": "9.9.9.9"}, False),
    ],
)
def test_the_portal_can_be_restricted_to_the_lan(remote, host, headers, is_shown):
    server = {"app_url": PUBLIC, "trusted_proxies": ("192.168.1.10",)}
    request = make_mocked_request("GET", "/portal/sign-in", headers={"Host": host, **headers})
    request = request.clone(remote=remote, scheme="https")

    assert HttpsPolicy(ServerSettings(**server), 8443).shows_portal(request)
    kept = HttpsPolicy(ServerSettings(**server, public_portal=False), 8443)
    assert kept.shows_portal(request) is is_shown


def test_a_box_without_a_public_address_serves_its_portal_locally():
    request = make_mocked_request("GET", "/portal", headers={"Host": "localhost:8080"})
    policy = HttpsPolicy(ServerSettings(public_portal=False), 8443)

    assert policy.shows_portal(request.clone(remote="127.0.0.1"))


async def test_every_page_of_a_restricted_portal_is_not_found_from_outside(tmp_path, clock):
    server = {"app_url": PUBLIC, "public_portal": False, "trusted_proxies": ("127.0.0.1",)}
    async with running_box(tmp_path, clock, with_settings(server=server)) as running:
        outside = {"Host": "riad.example", "X-Forwarded-Proto": "https",
                   "X-Forwarded-For": "9.9.9.9", "Accept": "text/html"}  # fmt: skip
        principals = running.app[PRINCIPALS]
        pages = [route for route in principals if route[1].startswith(("/portal", "/test/portal"))]
        assert len(pages) > 100

        for method, path in pages:
            async with running.client.request(method, path, headers=outside) as response:
                assert response.status == 404, (method, path)

        async with running.client.get("/", headers=outside) as response:
            assert 'href="/portal"' not in await response.text()
            assert 'href="/door"' in await response.text()
        async with running.client.get("/door", headers=outside) as response:
            assert response.status == 200
        assert public_base(running.live.links, running.box.settings.server) == ""
