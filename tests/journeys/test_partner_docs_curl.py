"""The guide's programs and commands for curl, run against a real box."""

import json
import re
import subprocess

import pytest

from tests.journeys.box_process import BoxProcess
from tests.journeys.partner_programs import DATE, EXAMPLES, a_partner
from tests.journeys.program_scenarios import scenarios
from tests.readme import ROOT

BOOK = ("bash", EXAMPLES / "curl" / "book.sh")
WATCH = ("bash", EXAMPLES / "curl" / "webhook.sh")


@pytest.fixture(scope="module")
def partner(tmp_path_factory):
    with a_partner(tmp_path_factory.mktemp("partner"), BoxProcess) as found:
        yield found


@scenarios
def test_the_curl_booking_program_behaves_as_the_guide_says(partner, scenario):
    scenario(partner, *BOOK)


def test_the_first_webhook_can_be_received_and_verified_without_a_server(partner):
    done = partner.run(*WATCH)

    assert done.returncode == 0, done.stderr
    assert re.search(r"^watch: http://127\.0\.0\.1:\d+/test#[\w-]{44}$", done.stdout, re.MULTILINE)
    assert re.search(r"^secret: whsec_[\w-]+$", done.stdout, re.MULTILINE)
    assert done.stdout.endswith("signature: valid\n")
    _, listed = partner.call("GET", "/v1/webhooks")
    assert [item for item in listed["items"] if item["active"]] == []


def test_the_program_prints_why_its_request_was_refused(partner):
    done = partner.run(*WATCH, more={"SERVICE_KEY": "svc_test_" + "0" * 48})

    assert done.returncode == 1
    assert '"UNAUTHORIZED"' in done.stderr


def test_every_command_of_the_guide_gets_the_documented_answer(partner):
    text = (ROOT / "docs" / "partners" / "guide.md").read_text("utf-8")
    commands = re.findall(r'^curl "\$SERVICE_URL(?:.*\\\n)*.*$', text, re.MULTILINE)
    booking = re.search(r"```json\n(.*?)\n```", text, re.DOTALL)
    _, venue = partner.call("GET", "/v1/venue")
    table, *others = (
        table for table in venue["tables"]
        if table["bookable"] and table["capacityMin"] <= 2 and table["capacityMax"] >= 3
    )  # fmt: skip
    own = {"tableId": table["id"], "date": DATE, "guests": table["capacityMin"]}
    body = json.loads(booking[1]) | own
    (partner.folder / "body.json").write_text(json.dumps(body), "utf-8")
    _, endpoint = partner.call("POST", "/v1/webhooks", {"url": "https://partner.example/h"})
    made = {**body, "tableId": others[0]["id"], "idempotencyKey": "to-change"}
    _, made = partner.call("POST", "/v1/reservations", made)
    more = {
        "DAY": DATE, "SLOT": body["slot"], "ENDPOINT": endpoint["id"], "TABLE": others[1]["id"],
        "RESERVATION": made["serviceReservationId"],
    }  # fmt: skip

    answered = [
        subprocess.run(
            ["bash", "-c", f"{command} --silent --fail-with-body"],
            capture_output=True, text=True, check=False, timeout=30,
            cwd=partner.folder, env=partner.environ(more),
        )
        for command in commands
    ]  # fmt: skip

    assert len(commands) == 12
    assert [done.returncode for done in answered] == [0] * 12, [done.stdout for done in answered]
    assert json.loads(answered[3].stdout)["status"] == "confirmed"
