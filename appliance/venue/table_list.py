"""Parse table lists pasted into the portal. Each line is a table or a range such as T1-T12."""

import re
from dataclasses import dataclass

from appliance.venue.model import Table
from appliance.venue.venue_file import CAPACITY_MAX, NAME_MAX, NUMBER_MAX, SPEND_MAX, TYPE_MAX

TABLES_MAX = 500
_CAPACITY_MIN, _CAPACITY_MAX = 1, 4  # defaults for empty cells
_COLUMNS = 6
_RANGE = re.compile(r"(\D*?)(\d{1,6})\s*(?:-|–|\.\.)\s*(\D*?)(\d{1,6})")
_HEADINGS = frozenset({"number", "numéro", "numero", "table", "n°", "no", "nº", "رقم"})


@dataclass(frozen=True, slots=True)
class Fault:
    """An invalid line. Lines are numbered from 1.

    `what` names the error: columns, number, name, capacity_min, capacity_max, order, type,
    minimum_spend, twice, taken, range or too_many.
    """

    line: int
    text: str
    what: str


@dataclass(frozen=True, slots=True)
class PastedTables:
    """The parsed tables and the invalid lines, both in the order of the list."""

    tables: tuple[Table, ...]
    faults: tuple[Fault, ...]


class _InvalidLine(Exception):
    """Raised for an invalid line. Its message becomes `Fault.what`."""


def parse_tables(text: str, taken: frozenset[str] = frozenset()) -> PastedTables:
    """Parse lines with the columns `number;name;fewest guests;most guests;type;minimum spend`.

    Only the number is required. Columns are separated by semicolons, tabs or commas. If the first
    line contains headings, it is skipped. The line `T1-T12;Booth` adds twelve tables with the names
    `Booth 1` to `Booth 12`. `taken` contains the numbers of existing tables.
    """
    tables: list[Table] = []
    faults: list[Fault] = []
    numbers: set[str] = set()
    for line, raw in enumerate(text.split("\n"), 1):
        if not raw.strip():
            continue
        cells = _split_cells(raw)
        if not tables and not faults and cells[0].casefold() in _HEADINGS:
            continue
        try:
            found = _parse_row(cells)
            _check_new(found, numbers, taken)
        except _InvalidLine as invalid:
            faults.append(Fault(line, raw.strip()[:NAME_MAX], str(invalid)))
            continue
        numbers.update(table.number for table in found)
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
        raise _InvalidLine("columns")
    number, name, fewest, most, type_, spend = cells + [""] * (_COLUMNS - len(cells))
    capacity_min = _parse_number(fewest, 1, CAPACITY_MAX, "capacity_min", _CAPACITY_MIN)
    capacity_max = _parse_number(
        most, 1, CAPACITY_MAX, "capacity_max", max(capacity_min, _CAPACITY_MAX)
    )
    if capacity_max < capacity_min:
        raise _InvalidLine("order")
    if len(type_) > TYPE_MAX:
        raise _InvalidLine("type")
    minimum_spend = _parse_number(spend, 0, SPEND_MAX, "minimum_spend", 0)
    return [
        Table("", each, its_name, capacity_min, capacity_max, minimum_spend, type_ or "standard",
              bookable=True)
        for each, its_name in _expand_range(number, name)
    ]  # fmt: skip


def _expand_range(number: str, name: str) -> list[tuple[str, str]]:
    """Return (number, name) for a table number, or for each table in a range."""
    found = _RANGE.fullmatch(number)
    if found is None:
        return [_check_label(number, name or number)]
    head, first, other_head, last = found.groups()
    if other_head not in {"", head} or int(first) > int(last):
        raise _InvalidLine("range")
    if int(last) - int(first) >= TABLES_MAX:
        raise _InvalidLine("too_many")
    width = len(first) if first.startswith("0") else 0
    counted = [str(n).zfill(width) for n in range(int(first), int(last) + 1)]
    stem = name.removesuffix(first).rstrip() if name.endswith(first) else name
    return [_check_label(head + n, f"{stem} {n}" if stem else head + n) for n in counted]


def _check_label(number: str, name: str) -> tuple[str, str]:
    if not 1 <= len(number) <= NUMBER_MAX:
        raise _InvalidLine("number")
    if len(name) > NAME_MAX:
        raise _InvalidLine("name")
    return number, name


def _parse_number(text: str, smallest: int, largest: int, what: str, default: int) -> int:
    if not text:
        return default
    digits = text.replace("\u202f", "").replace("\u00a0", "").replace(" ", "")
    fits = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(largest))
    if not fits or not smallest <= int(digits) <= largest:
        raise _InvalidLine(what)
    return int(digits)


def _check_new(found: list[Table], numbers: set[str], taken: frozenset[str]) -> None:
    if len(numbers) + len(found) > TABLES_MAX:
        raise _InvalidLine("too_many")
    for table in found:
        if table.number in numbers:
            raise _InvalidLine("twice")
        if table.number in taken:
            raise _InvalidLine("taken")
