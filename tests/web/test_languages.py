import re
from datetime import date
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from appliance import house_errors  # noqa: F401 - its refusals are found by their base
from appliance.errors import Refusal
from web.languages import isolate, load_languages

ROOT = Path(__file__).parents[2]
LANGUAGES = load_languages()


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "fr"),
        ("en", "en"),
        ("ar-MA,ar;q=0.9,fr;q=0.8", "ar"),
        ("de, fr;q=0.1, en;q=0.2", "en"),
        ("EN-gb", "en"),
        ("de,es", "fr"),
        ("en;q=0", "fr"),
        ("en;q=nonsense, ar;q=0.1", "ar"),
        (",;=;q", "fr"),
        ("*", "fr"),
    ],
)
def test_a_visitor_reads_the_language_wanted_most_and_french_without_a_wish(header, code):
    assert LANGUAGES.accepted(header).code == code


def is_ours(folder) -> bool:
    return Path(folder).name not in {"frontend", "static"}


def messages_in_the_pages():
    words = {"_": None, "gettext": None, "ngettext": (1, 2)}
    kinds = [("**.py", "python"), ("templates/**.html", "jinja2")]
    found = extract_from_dir(ROOT / "web", kinds, keywords=words, directory_filter=is_ours)
    return {message if isinstance(message, str) else message[0] for _, _, message, _, _ in found}


@pytest.mark.parametrize("code", ["fr", "ar"])
def test_every_message_of_the_pages_is_translated_and_no_other_is_kept(code):
    with (ROOT / "web" / "catalogues" / f"{code}.po").open("rb") as file:
        catalogue = read_po(file, locale=code)
    translated = {
        m.id if isinstance(m.id, str) else m.id[0]
        for m in catalogue
        if m.id and all(m.string if isinstance(m.string, tuple) else [m.string])
    }

    assert messages_in_the_pages() == translated


def all_refusals(kind=Refusal):
    return {other for sub in kind.__subclasses__() for other in ({sub} | all_refusals(sub))}


def test_every_refusal_is_said_in_arabic_with_the_same_blanks():
    with (ROOT / "web" / "catalogues" / "refusals.ar.po").open("rb") as file:
        said = {m.id: m.string for m in read_po(file, locale="ar") if m.id}

    assert said.keys() == {refusal.english for refusal in all_refusals()}
    for english, arabic in said.items():
        assert sorted(re.findall(r"\{\w+\}", english)) == sorted(re.findall(r"\{\w+\}", arabic))
        assert LANGUAGES.get("ar").gettext(english) == arabic


@pytest.mark.parametrize("code", ["fr", "ar"])
def test_a_translation_fills_no_blank_that_its_message_does_not_have(code):
    with (ROOT / "web" / "catalogues" / f"{code}.po").open("rb") as file:
        catalogue = read_po(file, locale=code)
    blanks = re.compile(r"%\((\w+)\)s").findall

    for message in catalogue:
        if isinstance(message.id, str):
            assert set(blanks(message.string)) == set(blanks(message.id)), message.id
        else:
            for form in message.string:
                assert set(blanks(form)) <= set(blanks(message.id[1])), message.id


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "شخص واحد"),
        (2, "شخصان"),
        (3, "3 أشخاص"),
        (10, "10 أشخاص"),
        (11, "11 شخصًا"),
        (99, "99 شخصًا"),
        (100, "100 شخص"),
        (103, "103 أشخاص"),
    ],
)
def test_arabic_counts_guests_in_its_six_forms(count, words):
    arabic = LANGUAGES.get("ar")

    assert arabic.ngettext("%(count)s guest", "%(count)s guests", count) == words


def test_french_says_zero_and_one_in_the_singular():
    french = LANGUAGES.get("fr")
    counted = [french.ngettext("%(count)s guest", "%(count)s guests", n) for n in (0, 1, 2)]

    assert counted == ["0 personne", "1 personne", "2 personnes"]


@pytest.mark.parametrize(
    ("code", "short", "long"),
    [
        ("fr", "sam. 21 nov.", "samedi 21 novembre 2026"),
        ("en", "Sat 21 Nov", "Saturday, 21 November 2026"),
        ("ar", "السبت، 21 نونبر", "السبت، 21 نونبر 2026"),
    ],
)
def test_dates_are_said_in_words_with_western_digits(code, short, long):
    language = LANGUAGES.get(code)

    assert language.short_date(date(2026, 11, 21)) == short
    assert language.long_date(date(2026, 11, 21)) == long


def test_arabic_runs_from_right_to_left_and_the_others_do_not():
    assert [(each.code, each.direction) for each in LANGUAGES.all()] == [
        ("fr", "ltr"),
        ("en", "ltr"),
        ("ar", "rtl"),
    ]


def test_a_name_cannot_turn_the_sentence_around_it():
    assert isolate("Sal\u202ema\u2069") == "\u2068Salma\u2069"
    assert isolate(None) is None


@pytest.mark.parametrize(
    ("code", "size", "said"),
    [
        ("fr", 35_489, "36\u202fko"),
        ("fr", 1_520_000, "1,5\u202fMo"),
        ("fr", 301_700_000, "302\u202fMo"),
        ("en", 35_489, "36 kB"),
        ("en", 1_460_000_000, "1.5 GB"),
        ("ar", 301_700_000, "302 م.ب"),
    ],
)
def test_a_size_is_told_in_the_units_of_its_reader(code, size, said):
    assert LANGUAGES.get(code).size(size) == said
