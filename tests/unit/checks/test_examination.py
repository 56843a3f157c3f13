"""A healthy box has nothing to mend; every finding is in each language, and has its remedy."""

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


def test_a_healthy_box_is_well_in_every_way(ward):
    checks = ward.examine()

    assert [check for check in checks if check.status != "ok"] == []
    assert {check.name for check in checks} == {c.__name__ for c in CHECKS} - {
        "backup_target", "mail_server", "outside", "readers",
        "certificate", "acme", "mirror",
    }  # fmt: skip
    assert worst(checks) == "ok"


def test_a_check_that_breaks_is_a_finding_and_stops_no_other(ward, monkeypatch):
    def broken(context):
        raise ValueError("Salma Idrissi")

    def sound(context):
        return Check.ok("All is well.")

    monkeypatch.setattr(all_checks, "CHECKS", (broken, sound))
    found = examine(ward.context)

    assert [(check.name, check.status) for check in found] == [("broken", "fail"), ("sound", "ok")]
    assert "Salma" not in str(found)


def test_looking_changes_no_row_and_no_file(ward):
    before = {path.name: path.read_bytes() for path in ward.root.glob("*.db")}

    ward.examine()

    assert {path.name: path.read_bytes() for path in ward.root.glob("*.db")} == before


def test_the_guide_for_who_looks_after_a_box_explains_every_check_and_no_other():
    guide = (ROOT / "docs" / "operations" / "troubleshooting.md").read_text("utf-8")

    explained = re.findall(r"^\| `(\w+)` \|", guide, re.MULTILINE)

    assert explained == [check.__name__ for check in CHECKS]


def test_what_the_running_box_saw_is_a_finding_with_its_beginning(ward):
    ward.write("INSERT INTO observation VALUES ('relay_away', '', 5, 'x')")

    found = ward.find("relay")

    assert (found.status, found.since) == ("fail", 5)


def test_what_observations_may_say_has_its_words():
    of_acme = {f"acme_{reason}" for reason in REASONS}
    relay = {RELAY_AWAY, RELAY_UNUSABLE, RELAY_REVOKED, RELAY_OTHER_KEY, RELAY_TAKEN}
    assert of_acme | relay == MESSAGES.keys()


@pytest.mark.parametrize(
    ("trouble", "status"),
    [("settings: sign-in refused with 535", "fail"), ("no route", "warn"),
     ("recipient refused with 450", "ok"), (None, "ok")],
)  # fmt: skip
def test_emails_that_wait_for_the_mail_server_are_a_finding_since_the_oldest(ward, trouble, status):
    with session(ward.root / "live.db", SystemClock(), Tokens(), newest_zone_database()) as tx:
        (table,) = tx.row("SELECT id FROM venue_table ORDER BY position")
        booking = a_booking(table_id=table, date=datetime.now(UTC).date() + timedelta(days=1))
        made = enter_by_staff(tx, booking, actor="staff:1")
        tx.insert("email", {"id": "e", "reservation_id": made.id, "kind": "reminder",
                            "language": "fr", "state": "waiting", "due_at": 9, "created_at": 7,
                            "trouble": trouble})  # fmt: skip

    found = ward.find("mail")

    assert (found.status, found.since) == (status, None if status == "ok" else 7)


def test_the_damage_that_the_night_found_is_told_without_reading_everything(ward):
    ward.write("INSERT INTO observation VALUES ('database_damaged', '', 5, 'page 7')")

    assert ward.status("integrity") == "ok"
    ward.become(deep=False)
    assert ward.find("integrity").since == 5
