"""Links for staff and terminals lead to the box itself, over https if the box serves it."""

import pytest

from appliance.core.settings import ServerSettings
from appliance.environment import Links, public_base, staff_base, terminal_base, trust_page

ADDRESS, PUBLIC = "http://192.168.1.20:8080", "https://riad.example"
AT_HOME = "https://192.168.1.20:8443"


@pytest.mark.parametrize(
    ("app_url", "address", "server", "found"),
    [
        ("", ADDRESS, {}, AT_HOME),
        ("", "http://[fd00::2]:8080", {"tls_port": 443}, "https://[fd00::2]"),
        ("", ADDRESS, {"tls_port": 0}, ADDRESS),
        ("", "http://127.0.0.1:8080", {}, "http://127.0.0.1:8080"),
        # The public address is for guests only.
        (PUBLIC, ADDRESS, {}, AT_HOME),
        ("http://riad.example", ADDRESS, {}, AT_HOME),
        # The venue has a host name in its own network.
        ("http://riad.lan:8080", ADDRESS, {}, "https://riad.lan:8443"),
        ("https://riad-atlas.local", ADDRESS, {}, "https://riad-atlas.local"),
        # The box is reachable only at its public address.
        (PUBLIC, ADDRESS, {"tls_port": 0}, PUBLIC),
        (PUBLIC, "http://127.0.0.1:8080", {"host": "127.0.0.1"}, PUBLIC),
        (PUBLIC, "http://127.0.0.1:8080", {}, PUBLIC),
        ("http://riad.lan", "http://127.0.0.1:8080", {"host": "127.0.0.1"}, "http://riad.lan"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "/test"])
def test_staff_links_use_the_https_address_of_the_box_on_the_lan(
    app_url, address, server, found, prefix
):
    links = Links(address, app_url, prefix)

    assert staff_base(links, ServerSettings(**server)) == found + prefix
    assert links.base == (app_url or address) + prefix


@pytest.mark.parametrize("app_url", ["", PUBLIC])
def test_a_venue_that_allows_plain_http_pairs_over_it_but_signs_in_over_https(
    app_url,
):
    links, server = Links(ADDRESS, app_url), ServerSettings(allow_http=True)

    assert terminal_base(links, server) == ADDRESS
    assert staff_base(links, server) == AT_HOME
    assert terminal_base(links, ServerSettings()) == AT_HOME


def test_a_box_reachable_only_through_a_tunnel_pairs_at_its_public_address():
    links = Links("http://127.0.0.1:8080", PUBLIC)

    assert terminal_base(links, ServerSettings(host="127.0.0.1", allow_http=True)) == PUBLIC


def test_a_public_link_is_given_only_if_it_differs_from_the_local_one():
    assert public_base(Links(ADDRESS, PUBLIC), ServerSettings()) == PUBLIC
    assert public_base(Links(ADDRESS, PUBLIC), ServerSettings(tls_port=0)) == ""
    assert public_base(Links(ADDRESS), ServerSettings()) == ""


def test_the_trust_page_is_given_only_with_links_to_the_boxs_own_https_address():
    assert trust_page(Links(ADDRESS, PUBLIC, "/test"), AT_HOME) == f"{ADDRESS}/trust"
    assert trust_page(Links(ADDRESS, PUBLIC), PUBLIC) == ""
    assert trust_page(Links(ADDRESS), ADDRESS) == ""
