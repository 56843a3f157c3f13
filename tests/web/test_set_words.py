"""How the catalogues' words are set: French as it is printed, one Arabic word for the box."""

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from appliance.mail.french import FRENCH
from appliance.typesetting import set_french
from web.languages import load_languages

ROOT = Path(__file__).parents[2]
CATALOGUES = ROOT / "web" / "catalogues"
SAID = load_languages().get("fr").words
BREAKS = re.compile(r" [:;!?»]|« ")
SPEAK_OF_THE_BOX = ("appliance/doctor/arabic.py", "appliance/doctor/conditions.py",
                    "appliance/backup/kit.py", "web/catalogues/ar.po",
                    "web/catalogues/refusals.ar.po")  # fmt: skip
OTHER_WORDS = re.compile("علب[ةت]|صندوق(?! البريد)")


@pytest.mark.parametrize(
    ("written", "set_"),
    [
        ("Quel soir ?", "Quel soir\u00a0?"),
        (
            "Touchez « Oui » : c'est fait ; merci !",
            "Touchez «\u00a0Oui\u00a0»\u00a0: c’est fait\u00a0; merci\u00a0!",
        ),
        ("De 19:30 à 22:00, en https://riad.example", "De 19:30 à 22:00, en https://riad.example"),
        ("déjà\u00a0: bien", "déjà\u00a0: bien"),
    ],
)
def test_a_sign_stays_with_its_word_and_an_apostrophe_is_curved(written, set_):
    assert set_french(written) == set_


def test_no_french_word_of_the_pages_leaves_its_sign_to_the_next_line():
    with (CATALOGUES / "fr.po").open("rb") as file:
        messages = [m for m in read_po(file, locale="fr") if m.id]

    for message in messages:
        for one in [message.id] if isinstance(message.id, str) else message.id:
            said = SAID.gettext(one)
            assert not BREAKS.search(said), said
            assert not re.search(r"\w'\w", said) or said == one, said


def test_no_letter_leaves_its_sign_to_the_next_line():
    lines = [FRENCH.colon, FRENCH.link, FRENCH.see_link, FRENCH.undo, FRENCH.stop, FRENCH.personal]
    for line in [*lines, FRENCH.footer, FRENCH.at_the_door, FRENCH.picture]:
        assert not BREAKS.search(line), line


def test_the_evening_has_one_name_in_arabic():
    assert "سهر" not in (CATALOGUES / "ar.po").read_text("utf-8")


@pytest.mark.parametrize("path", SPEAK_OF_THE_BOX)
def test_the_box_has_one_name_in_arabic(path):
    text = (ROOT / path).read_text("utf-8")

    assert OTHER_WORDS.findall(text) == []
