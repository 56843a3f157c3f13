"""Compare names, clean typed text, and write CSV cells.

The list of characters that count as the same is folding.json, which the pages' scripts read too
(web/frontend/src/shared/text_folding.ts).
"""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

_MARKS = frozenset({"Mn", "Mc", "Me", "Cf"})  # Unicode categories of characters without a width


def fold(text: str) -> str:
    """Return `text` in a form in which different spellings of the same name are equal.

    Removes case, accents, vowel signs and invisible characters, and unifies apostrophes, dashes,
    digits and letters that people use interchangeably (folding.json).
    """
    if text.isascii():  # fast path, because most names are ASCII and thousands are compared at once
        return text.lower().replace("`", "'")
    alike, _ = _lists()
    # Some apostrophes are accents on a space, and would be lost by the normalisation.
    parts = unicodedata.normalize("NFKD", text.translate(alike))
    letters = "".join(c for c in parts if unicodedata.category(c) not in _MARKS)
    return letters.lower().translate(alike)


def words(text: str) -> list[str]:
    """Return the folded words of `text`, without apostrophes.

    Dashes and other punctuation separate words.
    """
    return fold(text).translate(_lists()[1]).split()


def plain_dashes(text: str) -> str:
    """Return `text` with the sign `-` for every dash."""
    alike = _lists()[0]
    return "".join("-" if alike.get(ord(c)) == "-" else c for c in text)


@cache
def _lists() -> tuple[dict[int, str], dict[int, str]]:
    """Return folding.json as two tables for `str.translate`: for letters, and for words."""
    listed = json.loads(Path(__file__).with_name("folding.json").read_text("utf-8"))
    alike = {ord(c): target for target, characters in listed["alike"].items() for c in characters}
    in_words = dict.fromkeys(map(ord, listed["separators"]), " ")
    return alike, in_words | dict.fromkeys(map(ord, listed["silent"]), "")


# Direction marks, byte order marks, soft hyphens and spaces without width, which copied text often
# brings along. Joiners stay, because Persian and emoji need them.
_UNSEEN = (
    dict.fromkeys((0x00AD, 0x061C, 0x180E, 0x200B, 0x200E, 0x200F, 0xFEFF))
    | dict.fromkeys((*range(0x202A, 0x202F), *range(0x2060, 0x2070)))
)  # fmt: skip


def clean_line(text: str) -> str:
    """Return typed text for storage: composed (NFC), on one line, without unseen characters."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_UNSEEN).split())


def western_digits(text: str) -> str:
    """Return `text` with the decimal digits of any script replaced with 0 to 9."""
    return "".join(str(unicodedata.decimal(c, c)) for c in text)


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


def _is_formula(part: str) -> bool:
    """Whether the first visible character of `part`, in normal or full width, starts a formula."""
    for character in part:
        if character != '"' and unicodedata.category(character) not in _INVISIBLE:
            return unicodedata.normalize("NFKC", character)[0] in _FORMULA
    return False
