import pytest
from aiohttp.test_utils import make_mocked_request

from terminal_bridge.same_origin import is_from_our_page

BASE = "https://box.example/test"
COOKIE = {"Cookie": "session=1"}


@pytest.mark.proves("S15", "V3")
@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ({"Sec-Fetch-Site": "same-origin", **COOKIE}, True),
        ({"Sec-Fetch-Site": "none", **COOKIE}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://box.example"}, False),
        ({"Origin": "https://box.example", **COOKIE}, True),
        ({"Origin": "http://192.168.1.5:8080", **COOKIE}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "http://box.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "null", **COOKIE}, False),
        ({}, True),
        (COOKIE, False),
    ],
)
def test_a_request_of_another_sites_page_is_told_apart(headers, ours):
    request = make_mocked_request("POST", "/", {"Host": "192.168.1.5:8080", **headers})

    assert is_from_our_page(request, BASE) is ours
