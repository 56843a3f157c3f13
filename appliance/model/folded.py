"""Text as names are compared; `web/frontend/src/_fold.ts` is its twin for the browser."""

import unicodedata

# What people write for one another, on whichever keyboard is at hand.
_DIGITS = {
    chr(zero + digit): str(digit) for zero in (0x0660, 0x06F0) for digit in range(10)
}  # Arabic-Indic, and those of Persian and Urdu
_ALIKE = str.maketrans(
    _DIGITS
    | {
        "ة": "ه",  # ta marbuta, ha
        "ى": "ي",  # alif maqsura, ya
        "ی": "ي",
        "ک": "ك",
        "ٱ": "ا",
        "ـ": "",  # tatweel only stretches a word
    }
)


def fold(text: str) -> str:
    """Without case, accents, vowel signs, tatweel and invisible marks; digits are 0 to 9.

    Letters that people write for one another become one: ta marbuta is ha, alif maqsura is ya.
    """
    if text.isascii():  # most are, and thousands are compared at once
        return text.casefold()
    parts = unicodedata.normalize("NFKD", text)
    plain = "".join(sign for sign in parts if not _is_mark(sign))
    return plain.casefold().translate(_ALIKE)


def western_digits(text: str) -> str:
    """`text` with 0 to 9 for the digits of Arabic keyboards."""
    return text.translate(_WESTERN)


def _is_mark(sign: str) -> bool:
    category = unicodedata.category(sign)
    return category[0] == "M" or category == "Cf"


_WESTERN = str.maketrans(_DIGITS)
