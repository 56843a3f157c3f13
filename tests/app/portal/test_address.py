"""The owner chooses how guests and partners reach the box, and tests it."""

from dataclasses import replace

import pytest

from appliance.checks.check import RELAY_AWAY, observe
from appliance.core.settings import read_settings
from appliance.core.ssh import ensure_key
from appliance.relay import Relay
from appliance.tls.acme import REQUESTED, State, _write_state
from tests.app.portal.people import a_person, keeps_settings
from tests.app.relay.relay_world import a_relay
from tests.conftest import running_box, with_settings

PAGE = "/portal/box/address"
DIRECTORY = "https://acme-v02.api.letsencrypt.org/directory"


@pytest.fixture(autouse=True)
def settings_may_change(running):
    keeps_settings(running)


def saved(running):
    return read_settings(running.box.directory.settings_file, {})


@pytest.mark.parametrize(("agree", "directory"), [({"agree": "1"}, DIRECTORY), ({}, "")])
async def test_port_forwarding_saves_the_address_and_orders_a_certificate_with_consent(
    running, owner, agree, directory
):
    form = {"address": "https://atlas.example.com/", **agree}
    assert (await owner.post(f"{PAGE}/forward", form))[0] == 303
    found = saved(running)
    assert found.server.app_url == "https://atlas.example.com"
    assert (found.acme.directory, found.acme.agree_terms) == (directory, bool(agree))


@pytest.mark.parametrize(("path", "field"), [("forward", "address"), ("proxy", "proxied_address")])
async def test_a_name_unknown_to_dns_is_saved_with_a_warning(running, owner, path, field):
    form = {field: "https://atlass.example.com", "trusted_proxies": "127.0.0.1"}
    _status, _page, headers = await owner.post(f"{PAGE}/{path}", form)
    assert headers["Location"].endswith("?note=saved-unknown-name")
    assert saved(running).server.app_url == "https://atlass.example.com"


@pytest.mark.parametrize("typed", ["", "atlas.example.com", "http://atlas.example.com"])
async def test_an_address_without_https_is_refused_at_its_field(running, owner, typed):
    status, page, _headers = await owner.post(f"{PAGE}/forward", {"address": typed})
    assert (status, 'aria-invalid="true"' in page) == (400, True)
    assert saved(running).server.app_url == ""


async def test_saving_a_proxy_trusts_it_and_leaves_the_certificate_to_it(running, owner):
    proxies = "127.0.0.1, 10.0.0.0/8"
    form = {"proxied_address": "https://atlas.example.com", "trusted_proxies": proxies}
    assert (await owner.post(f"{PAGE}/proxy", form))[0] == 303
    found = saved(running)
    assert found.server.trusted_proxies == ("127.0.0.1", "10.0.0.0/8")
    assert found.acme.directory == ""


async def test_an_invalid_proxy_address_is_refused_at_its_field(running, owner):
    form = {"proxied_address": "https://atlas.example.com", "trusted_proxies": "my proxy"}
    status, page, _headers = await owner.post(f"{PAGE}/proxy", form)
    field = page.partition('name="trusted_proxies"')[2].partition("</label>")[0]
    assert (status, 'value="my proxy"' in field) == (400, True)
    assert 'aria-invalid="true"' in field


@pytest.fixture
async def relay(unused_tcp_port):
    async with a_relay(unused_tcp_port) as world:
        yield world


def line_of(offer):
    return (
        f"{offer.user}@{offer.host}:{offer.port} {offer.listen_port} {offer.fingerprint} "
        f"{offer.name}"
    )


async def test_joining_a_relay_that_knows_the_boxs_key_sets_the_public_address(
    running, owner, relay, monkeypatch
):
    monkeypatch.setattr("web.portal.address._CONNECTED_SECONDS", 0.01)  # nothing connects here
    root = running.box.directory.root
    key = (await owner.get(PAGE))[1].partition('id="relay-key"')[2]
    assert ensure_key(root) in key
    offer = relay.admit(root)

    assert (await owner.post(f"{PAGE}/relay", {"line": line_of(offer), "agree": "1"}))[0] == 303

    assert Relay.load(root) == offer
    found = saved(running)
    assert (found.server.app_url, found.acme.agree_terms) == (f"https://{offer.name}", True)


async def test_a_relay_through_which_the_box_cannot_be_reached_changes_nothing(
    running, owner, relay
):
    root = running.box.directory.root
    offer = relay.admit(root)
    relay.keys.clear()
    for line in (
        "nonsense", line_of(offer), line_of(replace(offer, fingerprint=f"SHA256:{'a' * 43}")),
        line_of(replace(offer, port=relay.listen_port)),
    ):  # fmt: skip
        status, page, _headers = await owner.post(f"{PAGE}/relay", {"line": line})
        assert (status, 'aria-invalid="true"' in page) == (422, True)
    assert saved(running).server.app_url == ""
    assert Relay.load(root) is None


async def test_the_page_explains_why_guests_cannot_reach_the_box(running, owner):
    before = (await owner.get(PAGE))[1].count('class="problem"')
    await running.live.database.write(observe, RELAY_AWAY, "x")

    assert (await owner.get(PAGE))[1].count('class="problem"') == before + 1


async def test_only_the_owner_can_open_or_change_the_address_settings(manager):
    assert (await manager.get(PAGE))[0] == 403
    assert (await manager.post(f"{PAGE}/forward", {"address": "https://a.example"}))[0] == 403


async def test_without_a_public_address_the_page_shows_the_ways_to_get_one(running, owner):
    status, page, _headers = await owner.get(PAGE)
    assert status == 200
    assert "proxy_set_header X-Forwarded-Proto $scheme;" in page
    assert f"{PAGE}/test" not in page  # there is nothing to test


@pytest.mark.parametrize(
    ("reason", "tries", "asked"), [("unreached", 1, True), ("unreached", 4, False), ("", 1, False)]
)
async def test_the_connection_test_retries_a_failed_certificate_order(
    tmp_path, clock, reason, tries, asked
):
    with_acme = with_settings(
        server={"app_url": "https://atlas.example.com"},
        acme={"directory": DIRECTORY, "agree_terms": True},
    )
    subject = ("atlas.example.com", DIRECTORY, "tls-alpn-01")
    _write_state(tmp_path / "tls", State(subject, (clock.now(),) * tries, reason=reason))
    async with running_box(tmp_path, clock, with_acme) as running:
        owner = await a_person(running)
        assert (await owner.post(f"{PAGE}/test"))[0] == 303
        assert (tmp_path / "tls" / REQUESTED).exists() == asked
