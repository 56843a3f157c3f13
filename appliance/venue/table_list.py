"""Parse table lists pasted into the portal. Each line is a table or a range such as T1-T12."""

import re
from dataclasses import dataclass

from appliance.core.errors import ValidationError, field_invalid
from appliance.core.text import fold, plain_dashes, western_digits
from appliance.venue.model import Table
from appliance.venue.venue_file import NAME_MAX, check_table

TABLES_MAX = 500
_CAPACITY_MIN, _CAPACITY_MAX = 1, 4  # defaults for empty cells
_COLUMNS = 6
_DIGITS_MAX = 10
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

    Only the number is required. Columns are separated by semicolons, tabs or commas. If the first
    line starts with a heading, it is skipped. The line `T1-T12;Booth` adds twelve tables named
    `Booth 1` to `Booth 12`. `taken` contains the numbers of existing tables.
    """
    tables: list[Table] = []
    faults: list[tuple[int, str, ValidationError]] = []
    for line, raw in enumerate(text.split("\n"), 1):
        if not raw.strip():
            continue
        cells = _split_cells(raw)
        if not tables and not faults and fold(cells[0]) in _HEADINGS:
            continue
        try:
            found = _parse_row(cells)
            if len(tables) + len(found) > TABLES_MAX:
                raise field_invalid("line", "tables_at_most", most=TABLES_MAX)
            numbers = {*taken, *(table.number for table in tables)}
            for table in found:
                check_table(table, numbers)
        except ValidationError as invalid:
            faults.append((line, raw.strip()[:NAME_MAX], invalid))
            continue
        tables += found
    return PastedTables(tuple(tables), tuple(faults))


def _split_cells(raw: str) -> list[str]:
    separator = next((sign for sign in ";\t" if sign in raw), ",")
    cells = [" ".join(cell.strip().strip('"').split()) for cell in raw.split(separator)]
    while len(cells) > 1 and not cells[-1]:
        del cells[-1]
    return cells


def _parse_row(cells: list[str]) -> list[Table]:
    if len(cells) > _COLUMNS:
        raise field_invalid("line", "table_columns")
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
        raise field_invalid("number", "table_range")
    if int(last) - int(first) >= TABLES_MAX:
        raise field_invalid("line", "tables_at_most", most=TABLES_MAX)
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
