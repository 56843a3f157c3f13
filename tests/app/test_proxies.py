"""Only a trusted proxy's headers count."""

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from appliance.http.request import caller_key, is_private, networks_of, peer_of

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
def test_the_callers_address_is_the_last_one_before_the_trusted_proxies(lines, peer):
    request = a_request(*(("X-Forwarded-For", line) for line in lines))
    assert peer_of(request, PROXIES) == peer


@pytest.mark.parametrize(
    ("lines", "private"),
    [(["https"], True), (["https", "http"], False), (["http", "https"], True),
     (["a, http"], False)],
)  # fmt: skip
def test_the_protocol_is_the_one_that_the_trusted_proxy_reports(lines, private):
    request = a_request(*(("X-Forwarded-Proto", line) for line in lines))
    assert is_private(request, PROXIES) is private


def test_all_addresses_of_one_ipv6_subnet_count_as_one_caller():
    assert caller_key("2001:db8::1") == caller_key("2001:db8::ffff") == "2001:db8::/64"
    assert caller_key("192.0.2.7") == caller_key("::ffff:192.0.2.7") == "192.0.2.7"
