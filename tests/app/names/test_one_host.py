"""`serve --host` takes precedence over the settings, for links too."""

import json
import re

import pytest

from tests.app.processes import Serving
from tests.journeys.box_process import found_box, venuebox

pytestmark = [pytest.mark.process, pytest.mark.slow]

EVERYWHERE, ALONE = "0.0.0.0", "127.0.0.1"  # noqa: S104 - a box serves the local network
SETTINGS = """
[server]
host = "{host}"
app_url = "{app_url}"
tls_port = {tls_port}
mdns = false
"""


def settings(data, host, app_url, tls_port):
    """Write the settings file."""
    text = SETTINGS.format(host=host, app_url=app_url, tls_port=tls_port)
    (data / "settings.toml").write_text(text, "utf-8")


def links(data):
    """Return the sign-in link and the pairing link that commands print while the box runs."""
    person = venuebox("staff", "create", "--name", "Yasmine", "--role", "door", "--json", data=data)
    offer = ("--environment", "live", "--name", "Entrée", "--json")
    phone = venuebox("terminal", "pair", *offer, data=data)
    return [json.loads(person)["signInUrl"], json.loads(phone)["url"]]


@pytest.mark.parametrize("started_with", [(), ("--host", EVERYWHERE)])
def test_a_box_opened_to_the_lan_prints_its_https_address(tmp_path, unused_tcp_port, started_with):
    data = found_box(tmp_path).data
    host = ALONE if started_with else EVERYWHERE
    settings(data, host, "http://192.168.1.20:8080", unused_tcp_port)
    with Serving("--data", str(data), *started_with, "--port", "0"):
        found = links(data)
    assert all(link.startswith(f"https://192.168.1.20:{unused_tcp_port}/") for link in found)


def test_the_first_start_prints_the_lan_address(tmp_path, unused_tcp_port):
    data = tmp_path / "box"
    data.mkdir(mode=0o700)
    settings(data, ALONE, "http://192.168.1.20:8080", unused_tcp_port)

    with Serving("--data", str(data), "--host", EVERYWHERE, "--port", "0") as serving:
        said = "\n".join(serving.lines)

    shown = re.findall(r"  (https?://\S+)/portal/setup#", said)
    assert shown == [f"http://{ALONE}:{serving.port}", f"https://192.168.1.20:{unused_tcp_port}"]
