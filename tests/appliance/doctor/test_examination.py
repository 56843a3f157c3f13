"""A healthy box has nothing to mend; every finding is in each language, and has its remedy."""

import re

import pytest

from appliance.actions.confirm_clock import CLOCK_LEAPT
from appliance.doctor.check import well, worst
from appliance.doctor.conditions import ARABIC
from appliance.doctor.examination import CHECKS, examine
from appliance.webhooks import conditions as noted
from tests.readme import ROOT


def test_a_healthy_box_is_well_in_every_way(ward):
    checks = ward.examine()

    assert [check for check in checks if check.status != "ok"] == []
    assert {check.name for check in checks} == {c.__name__ for c in CHECKS} - {
        "erasures", "mail_server", "readers", "certificate", "tls_port"
    }  # fmt: skip
    assert worst(checks) == "ok"


def test_every_finding_is_said_in_every_language_and_has_a_remedy_unless_all_is_well(ward):
    ward.on(ask=lambda _: None, clock_state=lambda: None)
    for check in ward.examine():
        for said in (check.finding, check.remedy):
            if said is not None:
                assert all((said.fr, said.en, said.ar)), check.name
        assert (check.remedy is None) == (check.status == "ok")


def test_a_check_that_breaks_is_a_finding_and_stops_no_other(ward):
    def broken(patient):
        raise ValueError("Salma Idrissi")

    def sound(patient):
        return well("sound", "Schéma {known}.", "Schema {known}.", known=1)

    found = examine(ward.patient, [broken, sound])

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


ALL = [value for name, value in vars(noted).items() if name.isupper() and isinstance(value, str)]
ALL.append(CLOCK_LEAPT)


def note(ward, name, detail="it is so."):
    ward.write("INSERT INTO condition (name, subject, since, detail)"
               " VALUES (:name, '', 0, :detail)", name=name, detail=detail)  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_what_the_box_has_noted_is_told_in_every_language(ward, name):
    note(ward, name)

    found = ward.find("conditions")

    assert found.status == ("fail" if name == noted.UNWRITTEN else "warn")
    assert "it is so." in found.finding.en
    assert name not in found.finding.fr
    assert ARABIC[name] in found.finding.ar


def test_what_a_process_noted_about_itself_is_past_when_it_is_off(ward):
    note(ward, noted.CLOCK_HELD)
    (ward.root / "poke").unlink()

    assert ward.status("conditions") == "ok"

    note(ward, noted.ENDPOINT_FAILING)
    assert ward.status("conditions") == "warn"
