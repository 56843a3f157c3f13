"""What a proxy of ours says below what the caller made up is what counts."""

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from web.peer import household_of, is_private, networks_of, peer_of

PROXIES = networks_of(["10.0.0.0/8"])


def a_request(*lines, remote="10.0.0.1"):
    request = make_mocked_request("GET", "/", headers=CIMultiDict(lines))
    return request.clone(remote=remote, scheme="http")


@pytest.mark.proves("S20")
@pytest.mark.parametrize(
    ("lines", "peer"),
    [
        (["203.0.113.9"], "203.0.113.9"),
        (["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
        (["198.51.100.1", "203.0.113.9"], "203.0.113.9"),
        (["198.51.100.1", "203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        (["203.0.113.9:5555"], "203.0.113.9"),
        (["198.51.100.1:1, 203.0.113.9:5555 , 10.0.0.2:80"], "203.0.113.9"),
        (["2001:db8::9"], "2001:db8::9"),
        (["[2001:db8::9]"], "2001:db8::9"),
        (["[2001:db8::9]:5555, 10.0.0.2"], "2001:db8::9"),
        (["::ffff:203.0.113.9"], "::ffff:203.0.113.9"),
        ([":80"], "10.0.0.1"),
        (["[]"], "10.0.0.1"),
        ([], "10.0.0.1"),
    ],
)
def test_the_nearest_address_before_our_proxies_is_the_callers(lines, peer):
    request = a_request(*(("X-Forwarded-For", line) for line in lines))

    assert peer_of(request, PROXIES) == peer


@pytest.mark.parametrize(
    ("lines", "private"),
    [
        (["https"], True),
        (["https", "http"], False),
        (["http", "https"], True),
        (["a, http"], False),
    ],
)
def test_the_last_word_on_the_protocol_is_our_proxys(lines, private):
    request = a_request(*(("X-Forwarded-Proto", line) for line in lines))

    assert is_private(request, PROXIES) is private


def test_a_stranger_who_is_no_proxy_tells_no_address():
    request = a_request(("X-Forwarded-For", "203.0.113.9"), remote="192.0.2.7")

    assert peer_of(request, PROXIES) == "192.0.2.7"


def test_a_whole_network_of_one_connection_is_one_caller():
    assert household_of("2001:db8::1") == household_of("2001:db8::ffff") == "2001:db8::/64"
    assert household_of("192.0.2.7") == household_of("::ffff:192.0.2.7") == "192.0.2.7"
