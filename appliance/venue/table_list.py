"""Parse table lists pasted into the portal or uploaded. A line is a table or a range as T1-T12."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass

from appliance.core.errors import ValidationError, field_invalid
from appliance.core.text import fold, plain_dashes, western_digits
from appliance.venue.model import Table
from appliance.venue.venue_file import NAME_MAX, check_table

TABLES_MAX = 500
_CAPACITY_MIN, _CAPACITY_MAX = 1, 4  # defaults for empty cells
_COLUMNS = 6
_DIGITS_MAX = 10
_CELL_LINES = 10  # at most, of a row whose cells contain line breaks
_SEPARATOR = re.compile("sep=([;,|\t])", re.IGNORECASE)
_RANGE = re.compile(r"(\D*?)(\d{1,6})\s*(?:-|\.\.)\s*(\D*?)(\d{1,6})")
# Folded
_HEADINGS = frozenset({"number", "numero", "table", "n°", "no", "رقم", "الرقم", "الطاوله"})


@dataclass(frozen=True, slots=True)
class PastedTables:
    """The parsed tables and the invalid lines, both in the order of the list.

    Each fault consists of the line's number (counted from 1), its text and the error.
    """

    tables: tuple[Table, ...]
    faults: tuple[tuple[int, str, ValidationError], ...]


def parse_tables(text: str, taken: frozenset[str] = frozenset()) -> PastedTables:
    """Parse lines with the columns `number;name;fewest guests;most guests;type;minimum spend`.

    Only the number is required. Columns are separated by semicolons, tabs or commas, and may be
    quoted as in CSV. If the first line starts with a heading, it is skipped. The line
    `T1-T12;Booth` adds twelve tables named `Booth 1` to `Booth 12`. `taken` contains the numbers of
    existing tables.
    """
    tables: list[Table] = []
    faults: list[tuple[int, str, ValidationError]] = []
    for line, raw, cells in _rows(text):
        if not tables and not faults and fold(cells[0]) in _HEADINGS:
            continue
        try:
            found = _parse_row(cells)
            if len(tables) + len(found) > TABLES_MAX:
                raise field_invalid("line", "at most {most} tables at once.", most=TABLES_MAX)
            numbers = {*taken, *(table.number for table in tables)}
            for table in found:
                check_table(table, numbers)
        except ValidationError as invalid:
            faults.append((line, raw.strip()[:NAME_MAX], invalid))
            continue
        tables += found
    return PastedTables(tuple(tables), tuple(faults))


def _rows(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield each row as (number of its first line, text, cells). Blank rows are skipped.

    A quoted cell may contain separators and line breaks. Each row has a separator of its own,
    because people paste rows from different places, unless Excel's line `sep=` names one for all.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    named = _SEPARATOR.fullmatch(lines[0].strip())
    line = 1 if named else 0
    while line < len(lines):
        ends = range(line + 1, min(line + _CELL_LINES, len(lines)) + 1)
        rows = ("\n".join(lines[line:end]) for end in ends)
        row = next((row for row in rows if row.count('"') % 2 == 0), lines[line])
        if row.strip():
            yield line + 1, row, _split_cells(row, named and named[1])
        line += row.count("\n") + 1


def _split_cells(row: str, separator: str | None) -> list[str]:
    if row.count('"') % 2:  # a quotation mark that does not quote a cell
        row = row.replace('"', "")
    unquoted = re.sub('"[^"]*"', "", row)
    separator = separator or next((sign for sign in ";\t" if sign in unquoted), ",")
    row = row.replace("\n", " ")
    [split, *_] = csv.reader([row], delimiter=separator, skipinitialspace=True)
    cells = [" ".join(cell.split()) for cell in split]
    while len(cells) > 1 and not cells[-1]:
        del cells[-1]
    return cells


def _parse_row(cells: list[str]) -> list[Table]:
    if len(cells) > _COLUMNS:
        raise field_invalid("line", "at most six columns.")
    number, name, fewest, most, type_, spend = cells + [""] * (_COLUMNS - len(cells))
    capacity_min = _parse_number(fewest, _CAPACITY_MIN)
    capacity_max = _parse_number(most, max(capacity_min, _CAPACITY_MAX))
    minimum_spend = _parse_number(spend, 0)
    return [
        Table("", each, its_name, capacity_min, capacity_max, minimum_spend, type_ or "standard",
              bookable=True)
        for each, its_name in _expand_range(number, name)
    ]  # fmt: skip


def _expand_range(number: str, name: str) -> list[tuple[str, str]]:
    """Return (number, name) for a table number, or for each table in a range."""
    found = _RANGE.fullmatch(plain_dashes(number))
    if found is None:
        return [(number, name or number)]
    head, first, other_head, last = found.groups()
    if other_head not in {"", head} or int(first) > int(last):
        raise field_invalid("number", "a range must go up, as in T1-T12.")
    if int(last) - int(first) >= TABLES_MAX:
        raise field_invalid("line", "at most {most} tables at once.", most=TABLES_MAX)
    width = len(first) if first.startswith("0") else 0
    counted = [str(n).zfill(width) for n in range(int(first), int(last) + 1)]
    stem = name.removesuffix(first).rstrip() if name.endswith(first) else name
    return [(head + n, f"{stem} {n}" if stem else head + n) for n in counted]


def _parse_number(text: str, default: int) -> int:
    """Return the number in a cell, or `default` if the cell is empty.

    If the cell contains anything else, return -1, which `check_table` rejects.
    """
    digits = re.sub("[\u202f\u00a0 ]", "", western_digits(text))
    if not digits:
        return default
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS_MAX
    return int(digits) if is_number else -1
