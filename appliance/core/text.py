"""Text as names are compared (twin: `web/frontend/src/_fold.ts`), and CSV for spreadsheets."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

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


BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # spreadsheets read a CSV without it in an old alphabet
# What a French spreadsheet expects. An English one splits at commas, in a cell too.
_SEPARATOR = ";"
_SEPARATORS = re.compile("([;,])")
_LINE_BREAK = re.compile(r"\s*[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]\s*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FORMULA = frozenset("=+-@'")
_UNSEEN = frozenset({"Cf", "Zs"})  # spreadsheets drop blanks and marks that nobody sees


def write_cells(cells: Iterable[str]) -> bytes:
    """A line without its end; every cell is quoted."""
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=_SEPARATOR, quoting=csv.QUOTE_ALL, lineterminator="").writerow(
        cells
    )
    return buffer.getvalue().encode()


def write_cell(value: Any) -> str:
    """`value` as the text of a cell, on one line, that no spreadsheet takes for a formula.

    Whatever separator a reader splits at, no part begins as a formula does: `'` is before it.
    """
    if value is None:
        return ""
    text = _CONTROL.sub("", _LINE_BREAK.sub(" ", str(value)))
    return "".join(f"'{part}" if _is_formula(part) else part for part in _SEPARATORS.split(text))


def phone_text(number: str | None) -> str | None:
    """`tel:+212600123457`: no formula, and no number that loses its zeros."""
    return f"tel:{number}" if number else None


def _is_formula(part: str) -> bool:
    """Whether its first visible sign begins a formula, in a full-width form too."""
    for sign in part:
        if sign != '"' and unicodedata.category(sign) not in _UNSEEN:
            return unicodedata.normalize("NFKC", sign)[0] in _FORMULA
    return False
