"""Text folding for names (twin: web/frontend/src/shared/text_folding.ts), and CSV cells."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

# Characters that people use interchangeably, depending on the keyboard.
_DIGITS = {
    chr(zero + digit): str(digit) for zero in (0x0660, 0x06F0) for digit in range(10)
}  # Arabic-Indic digits, and their Persian and Urdu forms
_ALIKE = str.maketrans(
    _DIGITS
    | {
        "ة": "ه",  # ta marbuta, ha
        "ى": "ي",  # alif maqsura, ya
        "ی": "ي",
        "ک": "ك",
        "ٱ": "ا",
        "ـ": "",  # tatweel only lengthens a word
    }
)


def fold(text: str) -> str:
    """Remove case, accents, vowel signs, tatweel and invisible marks; convert digits to 0 to 9.

    Interchangeable letters become one: ta marbuta becomes ha, alif maqsura becomes ya.
    """
    if text.isascii():  # fast path: most names are ASCII, and thousands are compared at once
        return text.casefold()
    parts = unicodedata.normalize("NFKD", text)
    plain = "".join(sign for sign in parts if not _is_mark(sign))
    return plain.casefold().translate(_ALIKE)


def western_digits(text: str) -> str:
    """Return `text` with the digits of Arabic keyboards replaced by 0 to 9."""
    return text.translate(_WESTERN)


def _is_mark(sign: str) -> bool:
    category = unicodedata.category(sign)
    return category[0] == "M" or category == "Cf"


_WESTERN = str.maketrans(_DIGITS)


BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # without it, spreadsheets assume a legacy encoding
# The separator of French spreadsheets. English ones split at commas, also within a cell.
_SEPARATOR = ";"
_SEPARATORS = re.compile("([;,])")
_LINE_BREAK = re.compile(r"\s*[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]\s*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FORMULA = frozenset("=+-@'")
_UNSEEN = frozenset({"Cf", "Zs"})  # spreadsheets drop spaces and invisible marks


def write_cells(cells: Iterable[str]) -> bytes:
    """Return a CSV line without its line ending; every cell is quoted."""
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=_SEPARATOR, quoting=csv.QUOTE_ALL, lineterminator="").writerow(
        cells
    )
    return buffer.getvalue().encode()


def write_cell(value: Any) -> str:
    """Return `value` as one line of cell text that no spreadsheet evaluates as a formula.

    Each part between separators that begins like a formula is prefixed with `'`.
    """
    if value is None:
        return ""
    text = _CONTROL.sub("", _LINE_BREAK.sub(" ", str(value)))
    return "".join(f"'{part}" if _is_formula(part) else part for part in _SEPARATORS.split(text))


def phone_text(number: str | None) -> str | None:
    """Return `tel:+212600123457`: not a formula, and not a number that loses its zeros."""
    return f"tel:{number}" if number else None


def _is_formula(part: str) -> bool:
    """Whether its first visible character starts a formula, also in full-width form."""
    for sign in part:
        if sign != '"' and unicodedata.category(sign) not in _UNSEEN:
            return unicodedata.normalize("NFKC", sign)[0] in _FORMULA
    return False
