"""The portal says what is wrong to people who know no command, no file of settings and no UTC."""

import re

import pytest

from appliance.doctor.arabic import fill
from appliance.doctor.conditions import ARABIC, FRENCH
from appliance.doctor.words import PLAIN, PLAIN_CONDITIONS, Instant
from tests.appliance.doctor.test_arabic import blanks, sentences

TECHNICAL = re.compile(
    r"venuebox \w+ ?-*\w*|settings\.toml|erasures\.jsonl|master\.key|UTC|chown|timedatectl|tzdata"
    r"|dialout|\b(?:server|mail|backup|webhooks|door|guest)\.[a-z*]|\{trouble\}|\{\w+_trouble\}"
    r"|\{because\}|\{which\}|\{told\}|\{when\}|\{newest\}|\{oldest\}|\{missing\}"
)
INSTANTS = {"told", "when", "newest", "oldest"}
NEEDS_NO_OTHER_WORDS = {
    # Only with `venuebox doctor --online`.
    "{server} does not take our letters: {trouble}.",
}


def test_whatever_the_checks_say_to_a_technician_has_other_words_for_the_house():
    technical = {pair[1] for pair in sentences() if any(map(TECHNICAL.search, pair))}

    assert technical - PLAIN.keys() == NEEDS_NO_OTHER_WORDS
    assert PLAIN.keys() <= {english for _, english in sentences()} | {"The box reports: {english}."}


def test_what_the_box_notes_by_itself_has_them_as_well():
    spoken = {*FRENCH.items(), *ARABIC.items()}

    assert {name for name, said in spoken if TECHNICAL.search(said)} <= PLAIN_CONDITIONS.keys()


@pytest.mark.parametrize("plain", [*PLAIN.values(), *PLAIN_CONDITIONS.values()])
def test_the_words_of_the_house_name_nothing_that_it_cannot_use(plain):
    for text in (plain.fr, plain.en, plain.ar):
        found = [m[0] for m in TECHNICAL.finditer(text) if m[0].strip("{}") not in INSTANTS]
        assert found == [], text
    assert blanks(plain.fr) == blanks(plain.en) == blanks(plain.ar)
    assert re.search("[\u0621-\u064a]", plain.ar)


@pytest.mark.parametrize("english", PLAIN)
def test_they_fill_no_blank_that_the_check_does_not_have(english):
    assert blanks(PLAIN[english].en) <= blanks(english)


def test_an_instant_is_told_a_technician_as_it_was_written():
    assert f"{Instant(1, '2026-11-21 19:05')} UTC" == "2026-11-21 19:05 UTC"
    assert fill("{when}", {"when": Instant(1, "19:05")}) == "\u206819:05\u2069"
