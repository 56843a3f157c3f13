"""The demo, used only through the commands that it prints."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.app.processes import Serving
from web.main import main

pytestmark = [pytest.mark.process, pytest.mark.slow]

CURL = """
import sys, urllib.request
words, headers, data = sys.argv[1:], {}, None
while words:
    word = words.pop(0)
    if word == "-H":
        name, _, value = words.pop(0).partition(": ")
        headers[name] = value
    elif word == "-d":
        data = words.pop(0).encode()
    elif word != "-sS":
        url = word
answer = urllib.request.urlopen(urllib.request.Request(url, data, headers))
sys.stdout.write(answer.read().decode())
"""


@pytest.fixture(scope="module")
def demo():
    """A running demo on a free port."""
    with Serving("--demo", "--port", "0") as serving:
        yield serving
        serving.terminate()


def fetch(url, data=None, **headers):
    """Return status and body. With `data`, send a POST."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data, named)  # noqa: S310 - an address the demo printed
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - as above
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def printed(demo, pattern):
    """Return the first group of the first match in the printed guide."""
    found = re.search(pattern, "\n".join(demo.lines))
    assert found, pattern
    return found.group(1)


def received(demo):
    return json.loads(fetch(printed(demo, r"as JSON: (\S+)\)"))[1])


def wait_for_event(demo, kind, name):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for one in received(demo)["items"]:
            guest = json.loads(one["body"])["data"]["reservation"]["customerFirstName"]
            if (one["event"], guest) == (kind, name):
                return one["signature"]
        time.sleep(0.05)
    raise AssertionError(f"{kind} for {name} did not arrive: {received(demo)}")


@pytest.fixture
def path_with_curl(tmp_path):
    """Return PATH, with a replacement for curl if the machine has none."""
    if shutil.which("curl") is None:
        stand_in = tmp_path / "curl"
        python = shlex.join([sys.executable, "-c", CURL])
        stand_in.write_text(f'#!/bin/sh\nexec {python} "$@"\n', "utf-8")
        stand_in.chmod(0o700)
    return f"{tmp_path}:{os.environ['PATH']}"


def follow(demo, path):
    """Run the printed steps in a shell, one after another."""
    commands = [line for line in demo.lines if line.startswith(("BOOKING=", "LINK=", "curl"))]
    return subprocess.run(
        [shutil.which("bash"), "-uc", "\n".join(commands)],
        capture_output=True, text=True, check=False, env={"PATH": path},
    )  # fmt: skip


def test_the_printed_commands_book_open_and_scan_and_the_events_are_signed(demo, path_with_curl):
    booking, link, verdict = follow(demo, path_with_curl).stdout.splitlines()

    assert json.loads(booking)["status"] == "confirmed"
    assert link == json.loads(booking)["guestAccessUrl"]
    assert json.loads(verdict)["result"] == "checked_in"
    assert wait_for_event(demo, "reservation.created", "Amina")["verdict"] == "valid"
    assert wait_for_event(demo, "reservation.checked_in", "Amina")["verdict"] == "valid"


def test_without_curl_the_printed_commands_stop_and_print_nothing(demo, tmp_path):
    (tmp_path / "grep").symlink_to(shutil.which("grep"))

    followed = follow(demo, str(tmp_path))

    assert followed.returncode != 0
    assert followed.stdout == ""


def test_every_printed_address_responds(demo):
    places = [line for line in demo.lines if line.startswith("  ")]
    printed_ones = re.findall(r"http://127\.0\.0\.1:[^\s)]+", "\n".join(places))
    for url in printed_ones:
        assert fetch(url.partition("#")[0], Accept="text/html")[0] == 200, url
    paths = {url.removeprefix(demo.address) for url in printed_ones}
    assert {"/portal", "/book", "/test/docs/partners/guide", "/test"} <= paths


def test_the_sign_in_link_creates_its_owner_once(demo):
    link = printed(demo, r"sign in +(\S+/portal/welcome#\S+)")
    page = link.partition("#")[0]
    form = urlencode({"link": link, "password": "seven tall palms"}).encode()
    headers = {
        "Origin": demo.address,
        "Content_Type": "application/x-www-form-urlencoded",
        "Accept_Language": "en",
    }

    status, ready = fetch(page, form, **headers)
    again, _ = fetch(page, form, **headers)

    assert (status, "Yasmine" in ready) == (200, True)
    assert again == 404


def test_a_kept_demo_has_the_same_keys_endpoints_and_reservations_on_another_port(tmp_path):
    found = []
    for _ in range(2):
        with Serving("--demo", "--keep", "--data", str(tmp_path), "--port", "0") as serving:
            key = printed(serving, r"(svc_test_\w+)")
            assert printed(serving, r"API explorer +(\S+)").startswith(serving.address)
            pages = [
                fetch(f"{serving.address}/test/v1/{path}", Authorization=f"Bearer {key}")[1]
                for path in ("venue", "reservations", "webhooks")
            ]
            # The links for guests contain the current address.
            pages = [
                json.loads(re.sub(r":\d+/test/(access|claim-guest)/", "", text)) for text in pages
            ]
            steps = [line for line in serving.lines if line.startswith("BOOKING=")]
            found.append((key, pages, printed(serving, r"scanner, live +(.+)"), len(steps)))
            serving.terminate()

    (key, pages, token, steps), again = found
    assert (key, pages, token) == again[:3]
    assert pages[1]["total"] == 3
    assert (steps, again[3]) == (1, 0)


def test_a_demo_never_replaces_a_real_box(tmp_path, capsys):
    data = tmp_path / "box"
    venue = Path("web/demo_venue.toml").absolute()
    assert main(["init", "--data", str(data), "--venue", str(venue)], {}) == 0
    before = (data / "live.db").read_bytes()

    assert main(["serve", "--demo", "--data", str(data), "--port", "0"], {}) == 1

    assert "already contains a box" in capsys.readouterr().err
    assert (data / "live.db").read_bytes() == before


@pytest.mark.parametrize("host", ["::", "192.168.1.5", "box.example"])
def test_a_demo_listens_only_on_this_machine(host, capsys):
    assert main(["serve", "--demo", "--host", host, "--port", "0"], {}) == 1
    assert "this machine only" in capsys.readouterr().err
