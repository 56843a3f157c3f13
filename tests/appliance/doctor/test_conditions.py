import re

import pytest

from appliance.actions.confirm_clock import CLOCK_LEAPT
from appliance.doctor.arabic import apart
from appliance.doctor.conditions import ARABIC, ENGLISH, FRENCH, say_in_arabic
from appliance.store.conditions import Condition
from appliance.webhooks import conditions as noted
from tests.appliance.doctor.test_arabic import blanks
from tests.readme import ROOT

ALL = [value for name, value in vars(noted).items() if name.isupper() and isinstance(value, str)]
ALL.append(CLOCK_LEAPT)
_NAMED = re.compile(r'^[A-Z_]+ = "([a-z]+(?:_[a-z]+)*)"', re.MULTILINE)


def note(ward, name, detail="it is so."):
    ward.write("INSERT INTO condition (name, subject, since, detail)"
               " VALUES (:name, '', 0, :detail)", name=name, detail=detail)  # fmt: skip


def every_name():
    """What the modules that note conditions, or say that they are over, call them."""
    rooms = ("appliance", "terminal_bridge", "web")
    files = [file for room in rooms for file in (ROOT / room).rglob("*.py")]
    texts = [file.read_text("utf-8") for file in files if "node_modules" not in file.parts]
    noting = [text for text in texts if re.search(r"\b(?:put|drop|_write)_condition\b", text)]
    return {name for text in noting for name in _NAMED.findall(text)}


def test_whatever_the_box_can_note_has_its_arabic():
    assert every_name() == ARABIC.keys()
    assert FRENCH.keys() <= ARABIC.keys()
    for name, english in ENGLISH.items():
        assert blanks(FRENCH[name]) == blanks(ARABIC[name]) == blanks(english)


@pytest.mark.parametrize("name", ENGLISH)
def test_a_proxy_is_told_with_its_address_and_what_to_write(ward, name):
    line = 'trusted_proxies = ["192.168.1.10"]'
    ward.write("INSERT INTO condition (name, subject, since, detail)"
               " VALUES (:name, '192.168.1.10', 0, :detail)", name=name, detail=line)  # fmt: skip

    found = ward.find("conditions")

    assert found.status == "warn"
    for text in found.finding.texts().values():
        assert line in text


@pytest.mark.parametrize("name", ALL)
def test_what_the_box_has_noted_is_told_in_every_language(ward, name):
    note(ward, name)

    found = ward.find("conditions")

    assert found.status == ("fail" if name == noted.UNWRITTEN else "warn")
    assert found.finding.en == "The box reports: it is so."
    assert name not in found.finding.fr
    assert found.finding.ar == f"يشير الجهاز إلى ما يلي: {ARABIC[name]}."


def test_what_is_not_arabic_in_the_arabic_stands_apart():
    def said(name):
        return say_in_arabic(Condition(name, "", 0, "the server \u202eis off."))

    assert said("mail_settings").endswith("\u2066mail.*\u2069")
    assert said("reader_trouble").endswith(f": {apart('the server is off')}")
    assert said("of_another_version") == apart("the server is off.")


def test_what_a_process_noted_about_itself_is_past_when_it_is_off(ward):
    note(ward, noted.CLOCK_HELD)
    (ward.root / "poke").unlink()

    assert ward.status("conditions") == "ok"

    note(ward, noted.ENDPOINT_FAILING)
    assert ward.status("conditions") == "warn"
