import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.door.guest_pass import spellings

LENGTH = 40
texts = st.text(string.ascii_uppercase + string.digits, min_size=LENGTH, max_size=LENGTH)

LOWER = {k: k.lower() for k in string.ascii_uppercase}
AZERTY = dict(zip("QAWZM1234567890", "AQZW?&é\"'(-è_çà", strict=True))
QWERTZ = dict(zip("YZ", "ZY", strict=True))
AZERTY_CAPS_LOCK = dict(zip("QAWZM", "aqzw,", strict=True))
ARABIC = dict(zip("QWERTYUIOPASDFGHJKLZXCVNM", "ضصثقفغعهخحشسيبلاتنمئءؤرىة", strict=True))
ARABIC_WITH_SHIFT = dict(
    zip(
        "QWERYUIOPASDFHJKLZXCVNM",
        "\u064e\u064b\u064f\u064cإ‘÷×؛\u0650\u064d][أـ،/~\u0652}{آ’",
        strict=True,
    )
)


def typed(text: str, keys: dict[str, str]) -> str:
    return "".join(keys.get(key, key) for key in text)


ARABIC_OF_LINUX = ARABIC | {"B": "\ufefb"}
HOSTS = {
    "US": {},
    "US, Caps Lock": LOWER,
    "French": AZERTY,
    "French, Caps Lock as Windows does it": LOWER | AZERTY_CAPS_LOCK,
    "French, Caps Lock as Linux does it": {
        **{k: AZERTY.get(k, k).swapcase() for k in AZERTY}, "M": "?",
    },
    "German": QWERTZ,
    "Arabic, with Shift": ARABIC_WITH_SHIFT | {"T": "لإ", "G": "لأ", "B": "لآ"},
    "Arabic of Linux, with Shift": ARABIC_WITH_SHIFT
    | {"T": "\ufef9", "G": "\ufef7", "B": "\ufef5"},
    "Arabic of Linux, without Shift": ARABIC_OF_LINUX,
    "Arabic with its own digits": ARABIC_OF_LINUX
    | dict(zip("0123456789", "٠١٢٣٤٥٦٧٨٩", strict=True)),
    "Arabic over French digits": ARABIC_OF_LINUX
    | {k: v for k, v in AZERTY.items() if k.isdigit()},
}  # fmt: skip


@pytest.mark.parametrize("keys", HOSTS.values(), ids=HOSTS)
@given(text=texts)
def test_a_scan_typed_with_another_keyboard_layout_is_converted_back(keys, text):
    assert text in list(spellings(f" {typed(text, keys)}\r\n", LENGTH))


@given(st.text(string.ascii_uppercase.replace("L", ""), min_size=LENGTH, max_size=LENGTH))
def test_the_arabic_key_b_and_the_keys_g_h_are_distinguished_by_text_length(text):
    # If the key B types lam and alef, a text with few of both has few readings.
    text = text.replace("GH", "GX").replace("B", "K")[:-6] + "BGHBGH"

    assert text in list(spellings(typed(text, ARABIC | {"B": "لا"}), LENGTH))


@given(st.text(max_size=400))
def test_the_number_of_guesses_is_limited_for_any_text(text):
    assert len(list(spellings(text, LENGTH))) <= 3 + 2 * 128


@given(texts)
def test_the_unchanged_text_is_the_first_guess(text):
    assert next(spellings(text, LENGTH)) == text
