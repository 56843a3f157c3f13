"""Parser for pasted lists of tables: one a line, or a range such as T1-T12 (portal, Venue)."""

import re
from dataclasses import dataclass

from appliance.venue.model import Table
from appliance.venue.venue_file import CAPACITY_MAX, NAME_MAX, NUMBER_MAX, SPEND_MAX, TYPE_MAX

TABLES_MAX = 500
_CAPACITY = (1, 4)  # the default
_COLUMNS = 6
_RANGE = re.compile(r"(\D*?)(\d{1,6})\s*(?:-|–|\.\.)\s*(\D*?)(\d{1,6})")
_HEADS = frozenset({"number", "numéro", "numero", "table", "n°", "no", "nº", "رقم"})


@dataclass(frozen=True, slots=True)
class Fault:
    """An invalid line, numbered from 1.

    `what` is columns, number, name, capacity_min, capacity_max, order, type, minimum_spend,
    twice, taken, range or too_many.
    """

    line: int
    text: str
    what: str


@dataclass(frozen=True, slots=True)
class PastedTables:
    """The parsed tables, in order, and the invalid lines."""

    tables: tuple[Table, ...]
    faults: tuple[Fault, ...]


class _Wrong(Exception):
    """An invalid line; the message is the fault's `what`."""


def parse_tables(text: str, taken: frozenset[str] = frozenset()) -> PastedTables:
    """Parse lines of `number;name;fewest;most;type;minimum spend`; only the number is required.

    Columns are separated by semicolons, tabs or commas. `T1-T12` is twelve tables; a name that
    ends with the first number is numbered too. `taken` are the venue's existing numbers.
    """
    tables: list[Table] = []
    faults: list[Fault] = []
    seen: set[str] = set()
    for line, raw in enumerate(text.split("\n"), 1):
        if not raw.strip():
            continue
        cells = _cells(raw)
        if not tables and not faults and cells[0].casefold() in _HEADS:
            continue
        try:
            found = _read(cells)
            _check_new(found, seen, taken)
        except _Wrong as wrong:
            faults.append(Fault(line, raw.strip()[:NAME_MAX], str(wrong)))
            continue
        seen.update(table.number for table in found)
        tables += found
    return PastedTables(tuple(tables), tuple(faults))


def _cells(raw: str) -> list[str]:
    separator = next((one for one in (";", "\t") if one in raw), ",")
    cells = [" ".join(cell.strip().strip('"').split()) for cell in raw.split(separator)]
    while len(cells) > 1 and not cells[-1]:
        cells.pop()
    return cells


def _read(cells: list[str]) -> list[Table]:
    if len(cells) > _COLUMNS:
        raise _Wrong("columns")
    number, name, fewest, most, kind, spend = cells + [""] * (_COLUMNS - len(cells))
    capacity_min = _whole(fewest, 1, CAPACITY_MAX, "capacity_min", _CAPACITY[0])
    capacity_max = _whole(most, 1, CAPACITY_MAX, "capacity_max", max(capacity_min, _CAPACITY[1]))
    if capacity_max < capacity_min:
        raise _Wrong("order")
    if len(kind) > TYPE_MAX:
        raise _Wrong("type")
    minimum_spend = _whole(spend, 0, SPEND_MAX, "minimum_spend", 0)
    return [
        Table("", each, called, capacity_min, capacity_max, minimum_spend, kind or "standard",
                   bookable=True)
        for each, called in _numbered(number, name)
    ]  # fmt: skip


def _numbered(number: str, name: str) -> list[tuple[str, str]]:
    """Expand a number or range into (number, name) pairs."""
    found = _RANGE.fullmatch(number)
    if found is None:
        return [_checked(number, name or number)]
    head, first, other_head, last = found.groups()
    if other_head not in {"", head} or int(first) > int(last):
        raise _Wrong("range")
    if int(last) - int(first) >= TABLES_MAX:
        raise _Wrong("too_many")
    width = len(first) if first.startswith("0") else 0
    counted = [str(n).zfill(width) for n in range(int(first), int(last) + 1)]
    stem = name.removesuffix(first).rstrip() if name.endswith(first) else name
    return [_checked(head + n, f"{stem} {n}" if stem else head + n) for n in counted]


def _checked(number: str, name: str) -> tuple[str, str]:
    if not 1 <= len(number) <= NUMBER_MAX:
        raise _Wrong("number")
    if len(name) > NAME_MAX:
        raise _Wrong("name")
    return number, name


def _whole(text: str, smallest: int, largest: int, what: str, default: int) -> int:
    if not text:
        return default
    digits = text.replace("\u202f", "").replace("\u00a0", "").replace(" ", "")
    fits = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(largest))
    if not fits or not smallest <= int(digits) <= largest:
        raise _Wrong(what)
    return int(digits)


def _check_new(found: list[Table], seen: set[str], taken: frozenset[str]) -> None:
    if len(seen) + len(found) > TABLES_MAX:
        raise _Wrong("too_many")
    for table in found:
        if table.number in seen:
            raise _Wrong("twice")
        if table.number in taken:
            raise _Wrong("taken")
