"""CSV that spreadsheets read as it was meant: in its alphabet, and never as a formula (S21)."""

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # spreadsheets read a CSV without it in an old alphabet
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
_LINE_BREAK = re.compile(r"\s*[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]\s*")


def write_cells(cells: Iterable[str]) -> bytes:
    """A line without its end; cells are quoted where they must be."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(cells)
    return buffer.getvalue().encode()


def write_cell(value: Any) -> str:
    """`value` as the text of a cell, on one line, that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    text = _LINE_BREAK.sub(" ", str(value))
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
