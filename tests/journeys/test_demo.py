"""The demo as a stranger meets it: every printed line, in the order of printing, nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.journeys.box_process import BoxProcess, clean_environ
from tests.web.test_demo import CURL


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A demo on a free port; it leaves by itself when it is asked to."""
    log = tmp_path_factory.mktemp("demo") / "demo.log"
    box = BoxProcess(None, log=log)
    box.settings = {}  # a stranger sets nothing
    try:
        box.spawn("--demo", "--port", "0")
        box.wait_until_ready()
        yield box
        box.stop()
    finally:
        box.kill()


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Runs lines as they are; where the machine has no curl, a stand-in fetches the same URLs."""
    folder = tmp_path_factory.mktemp("bin")
    if shutil.which("curl") is None:
        stand_in = folder / "curl"
        stand_in.write_text(f"#!{sys.executable}\n{CURL}", "utf-8")
        stand_in.chmod(0o700)
    environ = clean_environ({"PATH": f"{folder}:{os.environ['PATH']}"})

    def run(lines):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines],
            capture_output=True, text=True, check=True, env=environ, timeout=60,
        )  # fmt: skip
        return done.stdout

    return run


def steps(lines):
    """What stands under each numbered sentence, up to the next one."""
    text = "\n".join(lines).partition("Where to look")[0]
    numbered = re.split(r"^(\d)\. .*$", text, flags=re.MULTILINE)[1:]
    return dict(zip(numbered[::2], numbered[1::2], strict=True))


def where_to_look(lines, what):
    """What is printed beside those words."""
    return re.search(rf"^  {re.escape(what)} +(.+)$", "\n".join(lines), re.MULTILINE)[1]


def fetch(url):
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - an address it printed
        assert answer.status == 200
        return answer.read().decode()


def rows(page):
    """The rows of an HTML table as lists of words."""
    found = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [
        [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row)]
        for row in found
    ]


def wait_for_row(url, *words):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for row in rows(fetch(url)):
            if all(any(word in cell for cell in row) for word in words):
                return row
        time.sleep(0.05)
    raise AssertionError(f"no row with {words} in {rows(fetch(url))}")


def test_the_four_steps_lead_from_a_booking_to_its_signed_arrival(demo, shell):
    said = steps(demo.lines)
    receiver = said.pop("4").strip()

    # One shell, as one would paste them: each step uses what the one before has set.
    printed = shell("\n".join(said[number] for number in sorted(said)))

    booking, link, guest_pass, verdict = printed.splitlines()
    assert json.loads(booking)["guestAccessUrl"] == link
    assert re.fullmatch(r"SVC1[A-Z2-7]{135}", guest_pass)
    assert json.loads(verdict)["colour"] == "green"
    wait_for_row(receiver, "live", "reservation.created", "✓ valid", "Amina")
    wait_for_row(receiver, "live", "reservation.checked_in", "✓ valid", "Amina")
    assert not any("✗" in cell for row in rows(fetch(receiver)) for cell in row)


def test_the_printed_command_shows_the_deliveries(demo, shell):
    receiver = where_to_look(demo.lines, "partner's server").split()[0]
    wait_for_row(receiver, "live", "reservation.created")
    shown = {row[5] for row in rows(fetch(receiver)) if row and row[1] == "live"}

    printed = shell(where_to_look(demo.lines, "what was sent"))

    told = [json.loads(line) for line in printed.splitlines()]
    assert {one["id"][-12:] for one in told} >= shown
    assert {one["type"] for one in told} >= {"reservation.created"}


def test_the_outbox_holds_a_letter_of_test(demo):
    outbox = where_to_look(demo.lines, "letters of test")

    (letter,) = [row for row in rows(fetch(outbox)) if row]

    assert "sara@example.com" in letter
