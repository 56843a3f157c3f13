"""A healthy box has nothing to mend; every finding is in each language, and has its remedy."""

import re

from appliance.doctor.check import well, worst
from appliance.doctor.examination import CHECKS, examine
from tests.readme import ROOT


def test_a_healthy_box_is_well_in_every_way(ward):
    checks = ward.examine()

    assert [check for check in checks if check.status != "ok"] == []
    assert {check.name for check in checks} == {c.__name__ for c in CHECKS} - {
        "erasures", "mail_server", "readers", "certificate", "tls_port"
    }  # fmt: skip
    assert worst(checks) == "ok"


def test_every_check_is_named_as_its_function_and_said_in_every_language(ward):
    ward.on(ask=lambda _: None, clock_state=lambda: None)
    for check in ward.examine():
        for said in (check.finding, check.remedy):
            if said is not None:
                assert said.fr
                assert said.en
                assert said.ar
                assert said.fr.endswith("."), said
                assert said.en.endswith("."), said
                assert said.ar.endswith("."), said.ar
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
