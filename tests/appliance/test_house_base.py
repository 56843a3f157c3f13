"""Links for staff and terminals lead where a password and a token may travel."""

import pytest

from appliance.environment import Links, house_base, terminal_base
from appliance.settings import ServerSettings


@pytest.mark.parametrize(
    ("base", "server", "found"),
    [
        ("http://192.168.1.20:8080", {}, "https://192.168.1.20:8443"),
        ("http://192.168.1.20:8080/test", {}, "https://192.168.1.20:8443/test"),
        ("http://[fd00::2]:8080", {"tls_port": 443}, "https://[fd00::2]:443"),
        ("https://riad.example", {}, "https://riad.example"),
        ("http://192.168.1.20:8080", {"tls_port": 0}, "http://192.168.1.20:8080"),
        ("http://127.0.0.1:8080", {}, "http://127.0.0.1:8080"),
        ("http://riad.lan", {"host": "127.0.0.1"}, "http://riad.lan"),
        ("https://riad.example", {"host": "127.0.0.1"}, "https://riad.example"),
    ],
)
def test_they_begin_with_https_wherever_the_box_speaks_it(base, server, found):
    assert house_base(Links(base), ServerSettings(**server)) == found


def test_a_house_that_allows_tokens_in_the_open_pairs_there_and_has_passwords_travel_safely():
    links, server = Links("http://192.168.1.20:8080"), ServerSettings(allow_http=True)

    assert terminal_base(links, server) == "http://192.168.1.20:8080"
    assert house_base(links, server) == "https://192.168.1.20:8443"
    assert terminal_base(links, ServerSettings()) == "https://192.168.1.20:8443"
