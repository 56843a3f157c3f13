"""Keys, and what a scanner meant by them: however it and its host are set."""

import pytest

from terminal_bridge.readers.keys import _FRENCH, _US, KEYPAD_DIGITS, Stroke, read_strokes
from terminal_bridge.readers.keys import _KEYPAD as KEYPAD

PASS = "SVC1" + ("AEBAGBAFAYDQQCIKBMGA2DQPCAIREEYUCULBOGAZDINRYHI6D4QCCIRD" * 3)[:134] + "A"
LINK = "https://box.example/access/AZqwM0_-zW"


def strokes_of(text, layout, caps=False, keypad=False):
    """The keys that a scanner presses which believes in `layout`."""
    keys = {digit: (code, False) for code, digit in KEYPAD_DIGITS.items()} if keypad else {}
    for code, (plain, shifted) in sorted(layout.items(), reverse=True):
        if code in KEYPAD or plain in keys:
            continue
        keys[plain] = (code, False)
        keys.setdefault(shifted, (code, True))
    return [Stroke(keys[sign][0], keys[sign][1], caps) for sign in text]


@pytest.mark.parametrize("layout", [_US, _FRENCH], ids=["US scanner", "French scanner"])
@pytest.mark.parametrize("text", [PASS, PASS.lower(), "SVC-7K2M", "svc-7k2m", LINK])
def test_the_text_is_read_whatever_layout_the_scanner_was_set_to(layout, text):
    assert read_strokes(strokes_of(text, layout)) == text


@pytest.mark.parametrize("layout", [_US, _FRENCH], ids=["US scanner", "French scanner"])
def test_digits_may_come_from_the_keypad(layout):
    assert read_strokes(strokes_of(PASS, layout, keypad=True)) == PASS


@pytest.mark.parametrize("layout", [_US, _FRENCH], ids=["US scanner", "French scanner"])
def test_caps_lock_turns_letters_over_and_a_pass_does_not_mind(layout):
    assert read_strokes(strokes_of(PASS, layout, caps=True)) == PASS.lower()


def test_a_french_scanner_under_windows_caps_lock_needs_no_shift_for_digits():
    strokes = [Stroke(stroke.code, False, True) for stroke in strokes_of(PASS, _FRENCH)]

    assert read_strokes(strokes) == PASS


def test_what_is_none_of_ours_is_read_as_the_us_layout_writes_it():
    assert read_strokes(strokes_of("hello 12", _US)) == "hello 12"
