"""The recovery key is printed and typed. Usual mistakes are corrected or detected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyrage import x25519

from appliance.backup.recovery_key import RecoveryKey, kit_html, parse_recovery_key
from appliance.core.errors import OperatorError

KEY = RecoveryKey(str(x25519.Identity.generate()))
LETTERS = KEY.text.removeprefix("AGE-SECRET-KEY-1")


def test_the_printed_recovery_key_is_accepted_when_typed():
    typed = "\n".join(KEY.rows)

    assert parse_recovery_key(KEY.text) == KEY
    assert parse_recovery_key(typed.lower()) == KEY
    assert parse_recovery_key(LETTERS) == KEY
    assert parse_recovery_key(LETTERS.replace("L", "1").replace("0", "O")) == KEY


@given(st.integers(0, 57), st.sampled_from("23456789ACDEFGHJ"))
def test_a_mistyped_letter_in_the_recovery_key_is_detected(place, letter):
    wrong = LETTERS[:place] + letter + LETTERS[place + 1 :]

    if wrong != LETTERS:
        with pytest.raises(OperatorError, match="a typing error"):
            parse_recovery_key(wrong)


@pytest.mark.parametrize("text", ["", "ABCD", "A" * 57, "A" * 59, "AGE-SECRET-KEY-1"])
def test_a_recovery_key_of_the_wrong_length_is_refused(text):
    with pytest.raises(OperatorError, match="58 letters and digits"):
        parse_recovery_key(text)


def test_the_kit_shows_the_key_as_text_and_as_a_qr_code_in_every_language():
    target = "sftp://box@nas.example/backups"
    page = kit_html(KEY, "Riad <Atlas>", target)

    assert "Riad &lt;Atlas&gt;" in page
    assert "<svg" in page
    assert all(f'lang="{language}"' in page for language in ("fr", "en", "ar"))
    assert all(row in page for row in KEY.rows)
    assert f"--from {target}" in page
    assert "service install" in page


def test_the_recovery_key_does_not_appear_in_its_repr():
    assert repr(KEY) == "RecoveryKey()"
