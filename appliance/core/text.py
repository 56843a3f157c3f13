"""Fold names for comparison, and write CSV cells.

web/frontend/src/shared/text_folding.ts must fold names in the same way.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

# Arabic-Indic digits, and their Persian and Urdu forms
_DIGITS = {chr(zero + digit): str(digit) for zero in (0x0660, 0x06F0) for digit in range(10)}
_WESTERN_DIGITS = str.maketrans(_DIGITS)
# Characters that people use interchangeably. Which one they type often depends on their keyboard.
_SAME_LETTERS = str.maketrans(
    _DIGITS
    | {
        "ة": "ه",  # ta marbuta becomes ha
        "ى": "ي",  # alif maqsura becomes ya
        "ی": "ي",
        "ک": "ك",
        "ٱ": "ا",
        "ـ": "",  # tatweel, which only lengthens a word
        "’": "'",
    }
)


def fold(text: str) -> str:
    """Return `text` in a form in which different spellings of the same name are equal.

    Removes case, accents, vowel signs, tatweel and invisible marks, and converts digits to 0 to 9.
    Unifies letters that people use interchangeably: ta marbuta becomes ha, and alif maqsura
    becomes ya.
    """
    if text.isascii():  # fast path, because most names are ASCII and thousands are compared at once
        return text.casefold()
    parts = unicodedata.normalize("NFKD", text)
    letters = (c for c in parts if unicodedata.category(c) not in {"Mn", "Mc", "Me", "Cf"})
    return "".join(letters).casefold().translate(_SAME_LETTERS)


def western_digits(text: str) -> str:
    """Return `text` with Arabic-Indic, Persian and Urdu digits replaced with 0 to 9."""
    return text.translate(_WESTERN_DIGITS)


# Without this mark, spreadsheet programs do not recognise UTF-8 and assume a legacy encoding.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# With French settings, a spreadsheet program splits lines at semicolons; with English settings, at
# commas. Quotes do not always prevent this.
_SEPARATORS = re.compile("([;,])")
_LINE_BREAK = re.compile(r"\s*[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]\s*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FORMULA = frozenset("=+-@'")
_INVISIBLE = frozenset({"Cf", "Zs"})  # Unicode categories that spreadsheets ignore


def write_cells(cells: Iterable[str]) -> bytes:
    """Return a CSV line with every cell quoted, without the line ending."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=";", quoting=csv.QUOTE_ALL, lineterminator="")
    writer.writerow(cells)
    return buffer.getvalue().encode()


def write_cell(value: Any) -> str:
    """Return `value` as one line of cell text that no spreadsheet evaluates as a formula.

    The text is split at `;` and `,`, and each part that starts like a formula is prefixed with `'`.
    """
    if value is None:
        return ""
    text = one_line(str(value))
    return "".join(f"'{part}" if _is_formula(part) else part for part in _SEPARATORS.split(text))


def one_line(text: str) -> str:
    """Return `text` on one line, without control characters such as a terminal's escapes."""
    return _CONTROL.sub("", _LINE_BREAK.sub(" ", text))


def phone_text(number: str | None) -> str | None:
    """Return a phone number as `tel:+212600123457`, which spreadsheets treat as text."""
    return f"tel:{number}" if number else None


def _is_formula(part: str) -> bool:
    """Whether the first visible character of `part`, in normal or full width, starts a formula."""
    for character in part:
        if character != '"' and unicodedata.category(character) not in _INVISIBLE:
            return unicodedata.normalize("NFKC", character)[0] in _FORMULA
    return False
