"""The guide's programs and commands for curl, against a real box."""

import re
import subprocess

import pytest

from tests.journeys.box_process import BoxProcess, clean_environ
from tests.journeys.partner_programs import (
    EXAMPLES,
    a_partner,
    check_booking,
    check_refusal,
)
from tests.journeys.program_restarts import (
    check_correction,
    check_restart,
    check_restart_in_a_full_house,
    check_restart_too_late,
    check_restart_with_a_wrong_key,
)
from tests.journeys.program_roads import check_rough_road, check_torn_road
from tests.readme import ROOT

BOOK = ("bash", EXAMPLES / "curl" / "book.sh")
WATCH = ("bash", EXAMPLES / "curl" / "webhook.sh")


@pytest.fixture(scope="module")
def partner(tmp_path_factory):
    with a_partner(tmp_path_factory.mktemp("partner"), BoxProcess) as found:
        yield found


def test_a_program_books_once_however_often_it_runs_and_moves_on_to_a_free_table(partner):
    check_booking(partner, *BOOK)


def test_when_the_answer_is_lost_the_same_booking_is_asked_for_until_it_is_told(partner):
    check_rough_road(partner, *BOOK)


def test_half_an_answer_is_none_nor_is_a_proxys_page(partner):
    check_torn_road(partner, *BOOK)


def test_a_program_that_starts_again_asks_for_the_same_booking_again(partner):
    check_restart(partner, *BOOK)


def test_a_program_that_starts_again_in_a_full_house_has_its_table(partner):
    check_restart_in_a_full_house(partner, *BOOK)


def test_a_program_that_starts_again_too_late_books_another_table_once(partner):
    check_restart_too_late(partner, *BOOK)


def test_a_program_that_starts_again_with_a_wrong_key_keeps_what_it_asked_for(partner):
    check_restart_with_a_wrong_key(partner, *BOOK)


def test_a_program_that_was_refused_asks_anew_when_it_is_corrected(partner):
    check_correction(partner, *BOOK)


def test_a_program_says_the_code_of_a_refusal(partner):
    check_refusal(partner, *BOOK)


def test_the_first_webhook_arrives_verified_without_a_server(partner):
    done = partner.run(*WATCH)

    assert done.returncode == 0, done.stderr
    assert re.search(r"^watch: http://127\.0\.0\.1:\d+/test#[\w-]{44}$", done.stdout, re.MULTILINE)
    assert re.search(r"^secret: whsec_[\w-]+$", done.stdout, re.MULTILINE)
    assert done.stdout.endswith("signature: valid\n")
    _, listed = partner.call("GET", "/v1/webhooks")
    assert [item for item in listed["items"] if item["active"]] == []


def test_the_program_shows_why_it_was_refused(partner):
    done = partner.run(*WATCH, more={"SERVICE_KEY": "svc_test_" + "0" * 48})

    assert done.returncode == 1
    assert '"UNAUTHORIZED"' in done.stderr


def test_every_command_of_the_guide_is_answered_as_it_says(partner):
    text = (ROOT / "docs" / "partners" / "guide.md").read_text("utf-8")
    commands = re.findall(r'^curl "\$SERVICE_URL(?:.*\\\n)*.*$', text, re.MULTILINE)
    environ = clean_environ({"SERVICE_URL": partner.url, "SERVICE_KEY": partner.key})

    answered = [
        subprocess.run(
            ["bash", "-c", f"{command} --silent --fail-with-body"],
            capture_output=True, text=True, check=False, env=environ, timeout=30,
        )
        for command in commands
    ]  # fmt: skip

    assert len(commands) == 5
    assert [done.returncode for done in answered] == [0] * 5, [done.stdout for done in answered]
