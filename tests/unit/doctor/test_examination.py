"""A healthy box has nothing to mend; every finding is in each language, and has its remedy."""

import ast
import re

import pytest

from appliance.core.i18n import load_languages
from appliance.doctor import checks as doctor_checks
from appliance.doctor.check import MESSAGES, Check, worst
from appliance.doctor.checks import CHECKS, examine
from appliance.tls.acme import REASONS
from tests.readme import ROOT
from tests.unit.doctor.conftest import english


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

    monkeypatch.setattr(doctor_checks, "CHECKS", (broken, sound))
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


def note(ward, name, detail="it is so."):
    ward.write("INSERT INTO condition (name, subject, since, detail)"
               " VALUES (:name, '', 0, :detail)", name=name, detail=detail)  # fmt: skip


NOTING = (
    "Alert", "begin", "drop_alert", "note_alert", "_note", "_put", "Refused", "set_alert", "write",
)  # fmt: skip


def noted_names():
    """The names of conditions in the modules that note them, or say that they are over."""
    rooms = ("appliance", "terminal_bridge", "web")
    files = [file for room in rooms for file in (ROOT / room).rglob("*.py")]
    trees = [ast.parse(file.read_text("utf-8")) for file in files if "frontend" not in file.parts]
    values, noted = {}, set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(value))):
                if re.fullmatch(r"[a-z]+(_[a-z]+)+", value):
                    values[name] = value
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=arguments):
                if called in NOTING:
                    noted |= {each.id for each in arguments if isinstance(each, ast.Name)}
    return {values[name] for name in noted if name in values}


def test_each_condition_that_is_noted_has_its_words_and_no_other_has():
    of_acme = {f"acme_{reason}" for reason in REASONS}
    assert noted_names() | of_acme == MESSAGES.keys()


@pytest.mark.parametrize("name", MESSAGES)
def test_what_the_box_has_noted_is_told(ward, name):
    note(ward, name)

    found = ward.find("conditions")

    assert found.status == ("fail" if name == "unwritten_outcomes" else "warn")
    assert "%(" in MESSAGES[name] or "it is so" in english(found)


def test_a_condition_of_a_newer_version_is_told_as_it_was_noted(ward):
    note(ward, "of_tomorrow")

    assert "it is so" in ward.find("conditions").finding.text(load_languages().get("ar"))


def test_what_a_process_noted_about_itself_is_past_when_it_is_off(ward):
    note(ward, "clock_held")
    (ward.root / "poke").unlink()

    assert ward.status("conditions") == "ok"

    note(ward, "endpoint_failing")
    assert ward.status("conditions") == "warn"
