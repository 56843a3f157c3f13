"""The egress guard: which URLs may be registered, and which addresses may be connected to."""

import asyncio
import socket
import threading
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.errors import (
    InvalidWebhookUrl,
    OperatorError,
    WebhookNameClosed,
    WebhookUrlClosed,
)
from appliance.webhooks import url_policy as egress
from appliance.webhooks.url_policy import (
    Blocked,
    EgressGuard,
    EgressPolicy,
    Reach,
    SystemResolver,
    parse_allow_entry,
    parse_target_url,
    reach_of,
)
from tests.waiting import within
from tests.webhooks.corpus import ACCEPTED, REFUSED

OWN = "192.168.1.10"


def a_policy(*allowed):
    return EgressPolicy(allowed, lambda address: str(address) in {OWN, "93.184.216.99"})


def permits(policy, text, port=8443):
    return policy.permits(ip_address(text), port)


@pytest.fixture
def guard(names):
    names.known["receiver.example"] = ["93.184.216.34"]
    return EgressGuard(a_policy(), names)


@pytest.mark.parametrize("url", [*REFUSED, None, 1, True, [], {"url": "https://receiver.example/"}])
async def test_a_forbidden_url_cannot_be_registered(guard, url):
    with pytest.raises(InvalidWebhookUrl) as refusal:
        await guard.check(url, allow_http=False)

    assert refusal.value.body()["field"] == "url"


@pytest.mark.parametrize("url", ACCEPTED)
async def test_an_ordinary_url_can_be_registered(guard, url):
    assert (await guard.check(url, allow_http=False)).secure


async def test_plain_http_is_accepted_where_allowed_with_port_80_as_default(guard):
    receiver = await guard.check("http://receiver.example/hook", allow_http=True)

    assert (receiver.secure, receiver.port, receiver.authority) == (False, 80, "receiver.example")


@pytest.mark.parametrize(
    "trouble", [socket.gaierror(socket.EAI_NONAME, "x"), socket.gaierror(socket.EAI_AGAIN, "x"),
                TimeoutError()]
)  # fmt: skip
async def test_a_name_that_cannot_be_resolved_is_registered_because_the_box_may_be_offline(
    guard, names, trouble
):
    names.known["later.example"] = trouble

    assert (await guard.check("https://later.example/", allow_http=False)).host == "later.example"


@pytest.mark.parametrize(
    ("entry", "address", "port"),
    [
        ("10.0.0.5", "10.0.0.5", 8443),
        ("10.0.0.0/8", "10.200.0.1", 8443),
        ("10.0.0.5:9000", "10.0.0.5", 9000),
        ("192.168.1.0/24:9000", "192.168.1.77", 9000),
        ("100.64.0.0/10", "100.64.0.1", 443),
        ("fd00::/8", "fd12::1", 8443),
        ("fd00::1", "fd00::1", 8443),
        ("[fd00::1]:9000", "fd00::1", 9000),
        ("[fd00::/8]:9000", "fd00::7", 9000),
        ("127.0.0.1:9000", "127.0.0.1", 9000),
        ("127.0.0.0/8", "127.9.9.9", 8443),
        ("::1", "::1", 8443),
        ("169.254.0.0/16", "169.254.10.10", 8443),
        ("fe80::/10", "fe80::7", 8443),
        (OWN, OWN, 8443),
    ],
)
def test_an_allow_entry_permits_only_what_it_names(entry, address, port):
    assert permits(a_policy(entry), address, port)
    assert not permits(a_policy(), address, port)
    for other in ("10.77.0.1", "127.0.0.77", "169.254.169.254", "fd77::1", "::1", OWN):
        if ip_address(other) not in parse_allow_entry(entry).network:
            assert not permits(a_policy(entry), other, port)


def test_allowing_the_private_network_of_the_box_does_not_allow_the_box_itself():
    assert permits(a_policy("192.168.1.0/24"), "192.168.1.11")
    assert not permits(a_policy("192.168.1.0/24"), OWN)


def test_a_public_ipv6_address_on_the_boxs_network_needs_its_own_allow_entry(monkeypatch):
    monkeypatch.setattr(egress, "source_address", lambda _address: "2a01:cb00:1:2::10")
    policy = EgressPolicy(("[2a01:cb00:1:2::5]:8443",), egress.is_own_address)

    assert not permits(policy, "2a01:cb00:1:2::1")  # the venue's router
    assert not permits(policy, "2a01:cb00:1:2::10")
    assert permits(policy, "2a01:cb00:1:2::5")
    assert permits(policy, "2a01:cb00:1:3::1")


@pytest.mark.parametrize(
    "entry",
    ["0.0.0.0/0", "::/0", "10.0.0.0/7", "126.0.0.0/7", "128.0.0.0/1", "8.8.8.0/24", "fc00::/6",
     "169.254.0.0/15", "0.0.0.1", "224.0.0.1", "::", "64:ff9b::a00:1", "2002:a00:1::1", "",
     "localhost", "10.0.0.1/8", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:x",
     "[fd00::1", "[fd00::1]9000", "fd00::1:99999", "10.0.0", "10.0.0.1:80:80"],
)  # fmt: skip
def test_an_allow_entry_that_is_empty_or_too_wide_stops_the_start(entry):
    with pytest.raises(OperatorError, match=r"webhooks\.allow_networks"):
        a_policy(entry)


def test_addresses_at_the_edges_of_the_private_ranges_are_classified_correctly():
    for text, reach in {
        "9.255.255.255": Reach.PUBLIC, "10.0.0.0": Reach.PRIVATE,
        "10.255.255.255": Reach.PRIVATE, "11.0.0.0": Reach.PUBLIC,
        "172.15.255.255": Reach.PUBLIC, "172.16.0.0": Reach.PRIVATE,
        "172.31.255.255": Reach.PRIVATE, "172.32.0.0": Reach.PUBLIC,
        "126.255.255.255": Reach.PUBLIC, "128.0.0.0": Reach.PUBLIC,
        "223.255.255.255": Reach.PUBLIC, "224.0.0.0": Reach.NEVER,
        "fbff:ffff::": Reach.NEVER, "fc00::": Reach.PRIVATE, "fe00::": Reach.NEVER,
        "1fff:ffff::": Reach.NEVER, "2000::": Reach.PUBLIC, "2001:1ff::": Reach.NEVER,
        "2001:200::": Reach.PUBLIC, "3ffe:ffff::": Reach.PUBLIC,
    }.items():  # fmt: skip
        assert (text, reach_of(ip_address(text))) == (text, reach)


@given(
    st.text(max_size=60), st.sampled_from(["", "https://", "http://", "https://[", "https://a@"])
)
def test_no_parsed_url_contains_characters_that_could_break_a_request(text, start):
    try:
        receiver = parse_target_url(start + text, allow_http=True)
    except InvalidWebhookUrl:
        return

    for part in (receiver.authority, receiver.target):
        assert part.isascii()
        assert part.isprintable()
        assert " " not in part
    assert receiver.target.startswith("/")


# A port in an entry of `webhooks.allow_networks` is allowed only for the addresses of that entry.


@pytest.fixture
def opened(names):
    entries = ("10.0.0.5:25", "10.1.0.0/16", "[fd00::/8]:25", "10.0.0.6:443")
    return EgressGuard(EgressPolicy(entries, lambda _address: False), names)


@pytest.mark.parametrize(
    "url",
    ["https://1.1.1.1:25/", "http://1.1.1.1:25/", "https://10.1.0.7:25/", "http://1.1.1.1:443/",
     "https://1.1.1.1:80/", "https://[2606:4700::1111]:25/", "https://outside.example:25/",
     "https://mixed.example:25/"],
)  # fmt: skip
async def test_an_allowed_port_stays_blocked_on_other_addresses(opened, names, url):
    names.known |= {"outside.example": ["1.1.1.1"], "mixed.example": ["10.0.0.5", "1.1.1.1"]}

    with pytest.raises(Blocked):
        await opened.addresses(parse_target_url(url, allow_http=True))
    with pytest.raises(InvalidWebhookUrl):
        await opened.check(url, allow_http=True)


@pytest.mark.parametrize(
    "url",
    ["https://10.0.0.5:25/", "http://10.0.0.5:25/", "https://[fd12::1]:25/",
     "https://inside.example:25/", "http://10.0.0.6:443/", "https://1.1.1.1/", "http://1.1.1.1/",
     "https://1.1.1.1:1024/", "https://10.1.0.7/"],
)  # fmt: skip
async def test_an_allowed_port_is_open_on_the_addresses_in_its_entry(opened, names, url):
    names.known["inside.example"] = ["10.0.0.5"]

    assert await opened.addresses(parse_target_url(url, allow_http=True))
    assert await opened.check(url, allow_http=True)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9000/", "https://[fd12::1]/", "https://10.0.0.5:26/", "https://1.1.1.1:25/",
     "https://169.254.1.1/"],
)  # fmt: skip
async def test_adding_the_allow_entry_that_the_error_suggests_permits_the_address(
    opened, names, url
):
    with pytest.raises(WebhookUrlClosed) as refused:
        await opened.check(url, allow_http=True)

    entry = str(refused.value.details["entry"]).strip('"')
    wider = EgressGuard(EgressPolicy((entry,), lambda _address: False), names)
    assert await wider.check(url, allow_http=True)


async def test_a_refused_host_name_is_reported_with_its_port_and_without_its_address(opened, names):
    names.known["inside.example"] = ["10.9.9.9"]
    with pytest.raises(WebhookNameClosed) as refused:
        await opened.check("https://inside.example:22/", allow_http=True)
    assert ":22" in refused.value.error_en
    assert "10.9.9.9" not in refused.value.error_en


async def test_no_allow_entry_is_suggested_for_an_address_that_can_never_be_allowed(opened):
    with pytest.raises(InvalidWebhookUrl) as refused:
        await opened.check("https://224.0.0.1/", allow_http=True)

    assert not isinstance(refused.value, WebhookUrlClosed)


GOOD = ip_address("93.184.216.34")


class NameServers:
    """Name servers that do not answer for hosts named `silent` until the test lets them."""

    def __init__(self):
        self.asked = []
        self.answer = threading.Event()

    def getaddrinfo(self, host, *_args, **_kwargs):
        self.asked.append(host)
        if host.startswith("silent"):
            self.answer.wait(60)
        return [(None, None, None, None, (str(GOOD), 0))]


@pytest.fixture
def servers(monkeypatch):
    made = NameServers()
    monkeypatch.setattr(socket, "getaddrinfo", made.getaddrinfo)
    monkeypatch.setattr(egress, "DNS_SECONDS", 0.05)
    yield made
    made.answer.set()


async def found_in_the_end(guard):
    """Resolve a host, retrying while all look-up threads are busy."""
    async with within("a free look-up thread"):
        while True:
            try:
                return await guard.addresses(
                    parse_target_url("https://well.example/", allow_http=False)
                )
            except TimeoutError:
                await asyncio.sleep(0)


async def test_a_host_with_unresponsive_name_servers_does_not_delay_lookups_of_others(servers):
    guard = EgressGuard(EgressPolicy((), lambda _address: False), SystemResolver())
    silent = parse_target_url("https://silent.example/", allow_http=False)
    for _ in range(8):  # the guard gives up before the name server answers
        asked = [guard.addresses(silent) for _ in range(8)]
        given_up = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(error) for error in given_up} == {TimeoutError}

    assert await found_in_the_end(guard) == [GOOD]
    assert servers.asked.count("silent.example") == 1


async def test_lookups_for_registrations_cannot_use_up_the_threads_of_deliveries(servers):
    guard = egress.make_guard(egress.WebhookSettings())
    urls = [f"https://silent-{n}.example/" for n in range(60)]

    await asyncio.gather(*(guard.check(url, allow_http=False) for url in urls))

    assert len(servers.asked) == 6
    assert await found_in_the_end(guard) == [GOOD]
