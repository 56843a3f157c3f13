"""A box with a public address: links for guests and partners use it, links for staff and doors use
the local address."""

import re

import pytest

from tests.app.portal.people import a_person
from tests.conftest import running_box, with_settings
from web.middleware import SECURE

PUBLIC, ADDRESS, AT_HOME = (
    "https://riad.example", "http://192.168.1.20:8080", "https://192.168.1.20:8443"
)  # fmt: skip


@pytest.fixture
async def public(tmp_path, clock):
    """A box with the public address PUBLIC and the local address ADDRESS."""
    settings = with_settings(server={"app_url": PUBLIC}, webhooks={"clock_grace_minutes": 0})
    async with running_box(tmp_path, clock, settings) as running:
        running.box.move(ADDRESS)
        running.app[SECURE].tls_port = 8443
        yield running


@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_the_portal_pairs_phones_with_the_house_address(public, prefix):
    owner = await a_person(public)

    _, paired, _ = await owner.post(
        f"{prefix}/portal/door/pair", {"name": "Porte 2", "role": "scan"}
    )
    _, issued, _ = await owner.post(
        f"{prefix}/portal/door/issue", {"name": "Tourniquet", "role": "scan"}
    )

    assert f"{AT_HOME}{prefix}/door#pair=" in paired
    assert f"{ADDRESS}/trust" in paired
    assert PUBLIC not in paired
    assert f"{AT_HOME}{prefix}/terminal/v1" in issued
    assert PUBLIC not in issued


async def test_staff_are_invited_to_the_house_address_and_told_the_one_from_outside(public):
    owner = await a_person(public)
    _, text, _ = await owner.post("/portal/people", {"name": "Karim", "role": "host"})
    link = re.search(r'id="one-time-link">([^<]+)<', text)[1]
    assert link.startswith(f"{AT_HOME}/portal/welcome#")
    assert f"{PUBLIC}/portal/welcome#" in text


@pytest.mark.parametrize("host", ["192.168.1.20:8080", "riad-atlas.local:8080", "localhost"])
@pytest.mark.parametrize("path", ["/door", "/test/door", "/portal", "/access/x", "/docs"])
async def test_no_page_under_a_house_name_leads_to_the_public_address(public, host, path):
    headers = {"Host": host, "Accept": "text/html"}

    async with public.client.get(path, headers=headers, allow_redirects=False) as response:
        led_to, text = response.headers.get("Location", ""), await response.text()

    assert PUBLIC not in led_to
    if path.endswith("/door"):
        assert f"https://{host.partition(':')[0]}:8443{path}" in text
        assert PUBLIC not in text


async def test_guests_and_partners_are_given_the_public_address(public):
    _, venue, _ = await public.call("GET", "/v1/venue")
    booking = {"tableId": venue["tables"][0]["id"], "date": "2026-11-24", "guests": 2,
               "customer": {"name": "Salma", "phone": "+212600000001"},
               "idempotencyKey": "one"}  # fmt: skip

    _, made, _ = await public.call("POST", "/v1/reservations", json=booking)

    assert made["guestAccessUrl"].startswith(f"{PUBLIC}/access/")
    assert made["claimUrl"].startswith(f"{PUBLIC}/claim-guest/")
