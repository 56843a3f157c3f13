"""A port that `webhooks.allow_networks` names is opened at what the entry covers, nowhere else."""

import pytest

from appliance.errors import InvalidWebhookUrl, WebhookUrlClosed
from appliance.webhooks.addresses import EgressPolicy
from appliance.webhooks.egress import Blocked, EgressGuard
from appliance.webhooks.receiver import parse_receiver


@pytest.fixture
def guard(names):
    entries = ("10.0.0.5:25", "10.1.0.0/16", "[fd00::/8]:25", "10.0.0.6:443")
    return EgressGuard(EgressPolicy(entries, lambda _address: False), names)


def a_receiver(url):
    return parse_receiver(url, allow_http=True)


@pytest.mark.proves("S17")
@pytest.mark.parametrize(
    "url",
    ["https://1.1.1.1:25/", "http://1.1.1.1:25/", "https://10.1.0.7:25/", "http://1.1.1.1:443/",
     "https://1.1.1.1:80/", "https://[2606:4700::1111]:25/", "https://outside.example:25/",
     "https://mixed.example:25/"],
)  # fmt: skip
async def test_it_is_closed_everywhere_else(guard, names, url):
    names.known |= {"outside.example": ["1.1.1.1"], "mixed.example": ["10.0.0.5", "1.1.1.1"]}

    with pytest.raises(Blocked):
        await guard.addresses(a_receiver(url))
    with pytest.raises(InvalidWebhookUrl):
        await guard.check(url, allow_http=True)


@pytest.mark.parametrize(
    "url",
    ["https://10.0.0.5:25/", "http://10.0.0.5:25/", "https://[fd12::1]:25/",
     "https://inside.example:25/", "http://10.0.0.6:443/", "https://1.1.1.1/", "http://1.1.1.1/",
     "https://1.1.1.1:1024/", "https://10.1.0.7/"],
)  # fmt: skip
async def test_it_is_open_where_the_owner_said(guard, names, url):
    names.known["inside.example"] = ["10.0.0.5"]

    assert await guard.addresses(a_receiver(url))
    assert await guard.check(url, allow_http=True)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9000/", "https://[fd12::1]/", "https://10.0.0.5:26/", "https://1.1.1.1:25/",
     "https://169.254.1.1/"],
)  # fmt: skip
async def test_the_entry_that_a_refusal_names_opens_the_address(guard, names, url):
    with pytest.raises(WebhookUrlClosed) as refused:
        await guard.check(url, allow_http=True)

    entry = str(refused.value.details["entry"]).strip('"')
    opened = EgressGuard(EgressPolicy((entry,), lambda _address: False), names)
    assert await opened.check(url, allow_http=True)


async def test_no_entry_is_named_for_what_nothing_opens(guard):
    with pytest.raises(InvalidWebhookUrl) as refused:
        await guard.check("https://224.0.0.1/", allow_http=True)

    assert not isinstance(refused.value, WebhookUrlClosed)
