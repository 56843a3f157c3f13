import dataclasses
import string

import pytest
from babel import Locale

from appliance.mail.composing import CATALOGUES
from appliance.mail.words import name_to_greet, one_line
from appliance.model.letter import KINDS, LANGUAGES


def _texts(words):
    """Every text of a language under the path that leads to it."""
    found = {}
    for field in dataclasses.fields(words):
        value = getattr(words, field.name)
        if field.name == "kinds":
            for kind, texts in value.items():
                found |= {f"kinds.{kind}.{k}": v for k, v in dataclasses.asdict(texts).items()}
        elif field.name != "party":
            found[field.name] = value
    return found


def _braces(text):
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_said_in_every_language_with_the_same_details(language):
    french, words = _texts(CATALOGUES["fr"]), _texts(CATALOGUES[language])

    assert words.keys() == french.keys()
    for path, text in words.items():
        assert text.strip(), path
        assert _braces(text) == _braces(french[path]), path


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_of_letter_and_every_plural_form_has_its_words(language):
    words = CATALOGUES[language]

    assert set(words.kinds) == set(KINDS)
    forms = {Locale.parse(words.locale).plural_form(n) for n in range(201)}
    assert forms <= set(words.party)


@pytest.mark.parametrize("language", ["en", "ar"])
def test_no_text_was_left_in_french(language):
    french, words = _texts(CATALOGUES["fr"]), _texts(CATALOGUES[language])

    same = {path for path in words if words[path] == french[path] and words[path].isalpha()}
    assert same - {"direction"} <= ({"table"} if language == "en" else set())


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("Riad\r\nBcc: x@evil.example", "Riad Bcc: x@evil.example"),
        ("a\u2028b\u2029c\x85d\x00e", "a b c d e"),
        ("\u202eEvil\u2066", "Evil"),
        ("رياض  الأطلس", "رياض الأطلس"),
    ],
)
def test_what_was_typed_stays_on_one_line(typed, kept):
    assert one_line(typed) == kept


@pytest.mark.parametrize("name", ["Yasmine", "Jean-Luc", "D’Arcy", "ياسمين", "Zoë"])
def test_a_first_name_is_greeted(name):
    assert name_to_greet(name) == name


@pytest.mark.parametrize(
    "name", ["https://evil.example/x", "evil.example", "www", "a@b", "x" * 41, "", None, "12€"]
)
def test_an_address_typed_as_a_name_is_not_greeted(name):
    assert name_to_greet(name) == ("www" if name == "www" else None)


def test_no_arabic_text_begins_with_a_name_that_would_turn_its_line_around():
    for path, text in _texts(CATALOGUES["ar"]).items():
        if path not in {"during", "whole_evening"}:  # the day comes first, and is Arabic
            assert not text.startswith("{"), path
