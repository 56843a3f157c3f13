"""All checks of a healthy box pass, and every finding has translations and a remedy."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from appliance.checks import examine as all_checks
from appliance.checks.check import (
    MESSAGES,
    RELAY_AWAY,
    RELAY_UNUSABLE,
    Check,
    worst,
)
from appliance.checks.examine import CHECKS, examine
from appliance.clock import SystemClock, newest_zone_database
from appliance.core.tokens import Tokens
from appliance.database.integrity import session
from appliance.reservations.create import enter_by_staff
from appliance.tls.acme import REASONS
from tests.builders import a_booking
from tests.readme import ROOT
from web.relay.line import RELAY_OTHER_KEY, RELAY_REVOKED, RELAY_TAKEN


def test_every_check_passes_on_a_healthy_box(ward):
    checks = ward.examine()

    assert [check for check in checks if check.status != "ok"] == []
    assert {check.name for check in checks} == {c.__name__ for c in CHECKS} - {
        "backup_target", "mail_server", "outside", "readers",
        "certificate", "acme", "mirror", "relay",
    }  # fmt: skip
    assert worst(checks) == "ok"


def test_a_check_that_raises_becomes_a_finding_and_the_others_still_run(ward, monkeypatch):
    def broken(context):
        raise ValueError("Salma Idrissi")

    def sound(context):
        return Check.ok("All is well.")

    monkeypatch.setattr(all_checks, "CHECKS", (broken, sound))
    found = examine(ward.context)

    assert [(check.name, check.status) for check in found] == [("broken", "fail"), ("sound", "ok")]
    assert "Salma" not in str(found)


def test_running_the_checks_changes_no_row_and_no_file(ward):
    before = {path.name: path.read_bytes() for path in ward.root.glob("*.db")}

    ward.examine()

    assert {path.name: path.read_bytes() for path in ward.root.glob("*.db")} == before


def test_the_operations_guide_explains_exactly_the_existing_checks():
    guide = (ROOT / "docs" / "operations" / "troubleshooting.md").read_text("utf-8")

    explained = re.findall(r"^\| `(\w+)` \|", guide, re.MULTILINE)

    assert explained == [check.__name__ for check in CHECKS]


def test_an_observation_of_the_running_box_is_a_finding_with_its_start(ward):
    ward.write("INSERT INTO observation VALUES ('relay_away', '', 5, 'x')")

    found = ward.find("relay")

    assert (found.status, found.since) == ("fail", 5)


def test_every_observation_has_a_message():
    of_acme = {f"acme_{reason}" for reason in REASONS}
    relay = {RELAY_AWAY, RELAY_UNUSABLE, RELAY_REVOKED, RELAY_OTHER_KEY, RELAY_TAKEN}
    assert of_acme | relay == MESSAGES.keys()


@pytest.mark.parametrize(
    ("trouble", "status"),
    [("settings: sign-in refused with 535", "fail"), ("no route", "warn"),
     ("recipient refused with 450", "ok"), (None, "ok")],
)  # fmt: skip
def test_emails_waiting_for_the_mail_server_are_a_finding_with_the_oldest_time(
    ward, trouble, status
):
    with session(ward.root / "live.db", SystemClock(), Tokens(), newest_zone_database()) as tx:
        (table,) = tx.row("SELECT id FROM venue_table ORDER BY position")
        booking = a_booking(table_id=table, date=datetime.now(UTC).date() + timedelta(days=1))
        made = enter_by_staff(tx, booking, actor="staff:1")
        tx.insert("email", {"id": "e", "reservation_id": made.id, "kind": "reminder",
                            "language": "fr", "state": "waiting", "due_at": 9, "created_at": 7,
                            "trouble": trouble})  # fmt: skip

    found = ward.find("mail")

    assert (found.status, found.since) == (status, None if status == "ok" else 7)


def test_damage_found_by_the_nightly_check_is_reported_without_checking_again(ward):
    ward.write("INSERT INTO observation VALUES ('database_damaged', '', 5, 'page 7')")

    assert ward.status("integrity") == "ok"
    ward.become(deep=False)
    assert ward.find("integrity").since == 5
