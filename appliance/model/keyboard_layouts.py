"""What a keyboard-wedge scanner types on a host whose layout is not the scanner's own.

The scanner presses the keys of a US keyboard; the host writes what those keys mean to it.
"""

from collections.abc import Iterator
from itertools import combinations, islice

# By upper-cased text. `É` stands for `é`, as Caps Lock on Linux changes only the letters.
_AZERTY_DIGITS = {
    "&": "1", "É": "2", '"': "3", "'": "4", "(": "5", "-": "6", "§": "6", "È": "7", "_": "8",
    "!": "8", "Ç": "9", "À": "0",
}  # fmt: skip
_AZERTY = str.maketrans(
    _AZERTY_DIGITS | {"A": "Q", "Q": "A", "Z": "W", "W": "Z", "?": "M", ",": "M"}
)
_QWERTZ = str.maketrans("YZ", "ZY")

_ARABIC_INDIC_DIGITS = dict(zip("٠١٢٣٤٥٦٧٨٩", "0123456789", strict=True))
_ARABIC_LETTERS = (
    # as keys without Shift
    dict(zip("ضصثقفغعهخحشسيبلاتنمئءؤرىة", "QWERTYUIOPASDFGHJKLZXCVNM", strict=True))
    # as keys with Shift, by row
    | {"\u064e": "Q", "\u064b": "W", "\u064f": "E", "\u064c": "R", "إ": "Y", "‘": "U", "`": "U"}
    | {"÷": "I", "×": "O", "؛": "P", "\u0650": "A", "\u064d": "S", "]": "D", "[": "F", "أ": "H"}
    | {"ـ": "J", "،": "K", "/": "L", "~": "Z", "\u0652": "X", "}": "C", "{": "V", "آ": "N"}
    | {"’": "M"}
    # keys that write lam and alef at once, where the host has a single sign for it
    | {"\ufefb": "B", "\ufef5": "B", "\ufef7": "G", "\ufef9": "T"}
)  # fmt: skip
_ARABIC = str.maketrans(_ARABIC_LETTERS | _ARABIC_INDIC_DIGITS | {"'": "M"})
_ARABIC_AZERTY = str.maketrans(_ARABIC_LETTERS | _ARABIC_INDIC_DIGITS | _AZERTY_DIGITS)
_SHIFTED_PAIRS = {"لإ": "T", "لأ": "G", "لآ": "B"}
_PAIR = "لا"  # the key B, or G and then H
_MOST_GUESSES = 128


def spellings(text: str, length: int) -> Iterator[str]:
    """Every text of `length` characters that a scanner may have meant by `text`, likeliest first.

    Upper case, without any white space. Layouts: as it is (Caps Lock or not), French AZERTY
    (Caps Lock or not), German QWERTZ, Arabic (with its own, European or AZERTY digits).
    """
    typed = "".join(text.split()).upper()
    if len(typed) == length:
        yield typed
        yield typed.translate(_AZERTY)
        yield typed.translate(_QWERTZ)
    if not typed.isascii():
        yield from _arabic(typed, length)


def _arabic(typed: str, length: int) -> Iterator[str]:
    for pair, key in _SHIFTED_PAIRS.items():
        typed = typed.replace(pair, key)
    for guess in islice(_with_pairs(typed, length), _MOST_GUESSES):
        yield (spelling := guess.translate(_ARABIC))
        if (other := guess.translate(_ARABIC_AZERTY)) != spelling:
            yield other


def _with_pairs(typed: str, length: int) -> Iterator[str]:
    """`typed` with as many pairs read as the key B as make it `length` characters long."""
    pieces = typed.split(_PAIR)
    keys = len(typed) - length
    if not 0 <= keys < len(pieces):
        return
    for chosen in map(frozenset, combinations(range(1, len(pieces)), keys)):
        yield pieces[0] + "".join(
            ("B" if n in chosen else _PAIR) + pieces[n] for n in range(1, len(pieces))
        )
