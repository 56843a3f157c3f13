"""A new box without a screen is set up from another machine, over https only."""

import re

import pytest
from aiohttp.test_utils import make_mocked_request

from appliance.commands.console import Console
from appliance.commands.init import found_unfurnished_box
from appliance.core.data_directory import DataDirectory
from appliance.core.settings import Settings
from appliance.core.tokens import Tokens
from tests.conftest import running_box, with_settings
from web.mdns import ANY, find_local_address
from web.middleware import FIRST_START, SECURE
from web.serve import show_setup_link

LOCAL = "http://127.0.0.1:8080"
AT_HOME = "https://192.168.1.20:8443"
EVERYWHERE = ANY[0]
FROM_ANOTHER = {"X-Forwarded-Proto": "http", "X-Forwarded-For": "192.168.1.30"}


@pytest.fixture
def new_directory(tmp_path, clock):
    found_unfurnished_box(DataDirectory(tmp_path), Console(clock, Tokens(), {}))
    return tmp_path


async def test_the_setup_link_is_printed_for_this_machine_and_for_https(
    new_directory, clock, capsys
):
    async with running_box(new_directory, clock, Settings()) as new_box:
        new_box.box.move("http://192.168.1.20:8080")
        await show_setup_link(new_box.box, LOCAL)

    shown = capsys.readouterr().out
    here, there = re.findall(r"  (https?://\S+)/portal/setup#([\w-]{43})\n", shown)
    assert (here[0], there[0]) == (LOCAL, AT_HOME)
    assert here[1] == there[1]
    assert "venuebox doctor" in shown


async def test_setup_over_plain_http_is_redirected_to_https(new_directory, clock):
    behind = with_settings(server={"trusted_proxies": ["127.0.0.1"]})
    async with running_box(new_directory, clock, behind) as new_box:
        new_box.app[SECURE].tls_port = 8443
        for headers, wanted in ((FROM_ANOTHER, 307), ({}, 200)):
            async with new_box.client.get(
                "/portal/setup", headers=headers, allow_redirects=False
            ) as response:
                assert response.status == wanted
                if wanted == 307:
                    assert re.fullmatch(
                        r"https://127\.0\.0\.1:8443/portal/setup", response.headers["Location"]
                    )
                    assert response.headers["Cache-Control"] == "no-store"


async def test_an_unconfigured_proxy_is_not_redirected_to_itself(new_directory, clock):
    public = with_settings(server={"app_url": "https://riad.example"})
    said = {"Host": "riad.example", "X-Forwarded-Proto": "https"}
    async with running_box(new_directory, clock, public) as new_box:
        request = make_mocked_request("GET", "/portal/setup", headers=said, app=new_box.app)
        led = new_box.app[FIRST_START].redirect(request.clone(remote="192.168.1.2"))
    assert led is None  # the page explains why


@pytest.mark.parametrize(
    ("host", "found"),
    [(EVERYWHERE, "http://127.0.0.1:8080"), ("::", "http://127.0.0.1:8080"),
     ("127.0.0.1", "http://127.0.0.1:8080"), ("::1", "http://[::1]:8080"), ("192.168.1.20", "")],
)  # fmt: skip
def test_a_password_can_be_set_over_the_setup_link_for_this_machine(host, found):
    assert find_local_address(host, 8080) == found
