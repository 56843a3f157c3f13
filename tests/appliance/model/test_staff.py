import pytest

from appliance.model.guessable import is_guessable

NAMES = ("Yasmine El Fassi", "Riad Atlas")


@pytest.mark.parametrize(
    "password",
    ["12345678", "Password", "motdepasse", "aaaaaaaa", "abababab", "venuebox", "VenueBox2026!",
     "riadatlas", "riad atlas", "Riad-Atlas1", "yasmine1", "Yasmine2026", "atlasatlas"],
)  # fmt: skip
def test_what_anyone_would_try_first_is_guessable(password):
    assert is_guessable(password, NAMES)


@pytest.mark.parametrize(
    "password",
    ["correct horse battery", "le thé est servi à minuit", "x7#kQ2!pLm", "terrasse aux citrons",
     "كلمة مرور طويلة"],
)  # fmt: skip
def test_a_sentence_or_a_random_word_is_not(password):
    assert not is_guessable(password, NAMES)
