"""What the door says in words: dates, and nothing where nothing is known."""

import pytest

from appliance.model.verdict import FirstCheckIn, Verdict, see
from appliance.model.verdict_sentences import LANGUAGES, phrase
from tests.appliance.arrivals import a_guest

FIRST = FirstCheckIn(1_795_287_600_000, "19:00", "Porte 1", None)


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("fr", "attendus le dimanche 22 novembre à 20:00."),
        ("en", "expected on Sunday 22 November at 20:00."),
        ("ar", "الحجز يوم \u2068الأحد 22 نونبر على الساعة 20:00\u2069."),
    ],
)
def test_another_evening_is_said_in_words(language, said):
    verdict = Verdict("not_yet", see(a_guest(date="2026-11-22", slot="20:00")))

    assert phrase(verdict, language).staff.endswith(said)


def test_a_whole_evening_needs_no_hour():
    verdict = Verdict("too_late", see(a_guest(date="2026-11-03")))

    assert phrase(verdict, "fr").guest == "Votre réservation était pour le mardi 3 novembre."


@pytest.mark.parametrize("language", LANGUAGES)
def test_since_when_they_are_in_is_told_only_where_it_is_known(language):
    seen = see(a_guest(guests=4, arrived=4))

    assert "Porte 1" in phrase(Verdict("already_checked_in", seen, 0, FIRST), language).staff
    unknown = phrase(Verdict("already_checked_in", seen), language).staff
    assert "—" not in unknown
    assert unknown.count("4") == 2
