"""The recovery key: printed, typed again with the usual mistakes, and never a wrong one taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.backup.recovery_key import RecoveryKey, kit_html, kit_text, parse_recovery_key
from appliance.core.errors import OperatorError


@given(st.binary(min_size=32, max_size=32))
def test_what_is_printed_is_read_again(raw):
    key = RecoveryKey(raw)

    assert parse_recovery_key(key.text) == key
    assert parse_recovery_key(key.text.lower().replace("-", " ")) == key
    assert parse_recovery_key(key.text.replace("0", "O").replace("1", "l")) == key


@given(st.binary(min_size=32, max_size=32), st.integers(0, 55), st.sampled_from("23456789ABCDEF"))
def test_a_wrong_letter_is_found(raw, place, letter):
    letters = RecoveryKey(raw).text.replace("-", "")
    wrong = letters[:place] + letter + letters[place + 1 :]

    if wrong != letters:
        with pytest.raises(OperatorError, match="the recovery key contains a typing error"):
            parse_recovery_key(wrong)


@pytest.mark.parametrize("text", ["", "ABCD", "U" * 56, "0" * 55, "0" * 57])
def test_what_is_no_key_is_refused_in_a_sentence(text):
    with pytest.raises(OperatorError, match="56 letters and digits"):
        parse_recovery_key(text)


def test_the_kit_shows_the_key_as_text_and_as_a_code_in_every_language():
    key = RecoveryKey(bytes(range(32)))
    page = kit_html(key, "Riad <Atlas>")

    assert "Riad &lt;Atlas&gt;" in page
    assert "<svg" in page
    assert all(f'lang="{language}"' in page for language in ("fr", "en", "ar"))
    for text in (page, kit_text(key, "Riad", "fr")):
        assert all(group in text for group in key.text.split("-"))


def test_the_key_is_not_in_what_a_log_may_show():
    assert repr(RecoveryKey(bytes(range(32)))) == "RecoveryKey(…)"
