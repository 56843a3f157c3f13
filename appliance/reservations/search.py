"""Search for reservations by name, code, table or phone number, and for available tables."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from appliance.core.text import fold
from appliance.database.connection import Reader
from appliance.reservations.model import Reservation
from appliance.reservations.rows import (
    RESERVATION_COLUMNS,
    RESERVATION_FROM,
    WITH_REQUEST,
    Hold,
    list_holds,
)
from appliance.venue.model import (
    Slot,
    Table,
    find_closing,
    get_venue,
    interval,
    list_tables,
    overlap,
)

_FEWEST_DIGITS = 3
_LAST_DIGITS = 4
_NATIONAL_DIGITS = 9  # minimum length of a complete number without country code and leading 0
_COUNTRY_CODE = re.compile(
    r"(?:1|7|2(?:[07]|[1-689]\d)|3(?:[0-469]|[578]\d)|4(?:2\d|[013-9])|5(?:[1-8]|[09]\d)"
    r"|6(?:[0-6]|[7-9]\d)|8(?:[1246]|[03579]\d)|9(?:[0-58]|[679]\d))0?"
)
_NAME_MAX = 80
_NAME = re.compile(r"(?:[^\W\d_]['’])?[^\W\d_]{2,}(?:[\s'’.-]+[^\W\d_]+)*")


def search(reservations: Iterable[Reservation], query: str) -> list[Reservation]:
    """Return the reservations that match every word of `query`, or all of them if it is blank.

    Terminals use this search. A phone number matches only as a whole or by its last four digits,
    so that a number cannot be guessed digit by digit at a terminal (docs/security.md, S4).
    """
    return [found for found in reservations if _matches(found, query, _ends_or_equals)]


def fits(reservation: Reservation, query: str) -> bool:
    """Whether every word of `query` matches the reservation.

    A word of digits may match any part of the phone number. If `query` as a whole is a number that
    contains spaces, it is also compared with the phone number as a single number.
    """
    return _matches(reservation, query, _contains)


def asks_phone(query: str) -> bool:
    """Whether `query`, or a word in it, is a number that `search` compares with phone numbers."""
    numbers = (_read_number(text) for text in (query, *query.split()))
    return any(len(number) >= _LAST_DIGITS for number in numbers)


def search_by_name(reservations: Iterable[Reservation], query: str) -> list[Reservation]:
    """Return the reservations whose customer's name matches every word of `query`.

    A word matches if a word in the name begins with it. A hyphen separates words, as a space does.
    The result is empty for a blank `query`.
    """
    words = _without_hyphens(query).split()

    def matches(reservation: Reservation) -> bool:
        names = _without_hyphens(reservation.customer_name or "").split()
        return all(any(name.startswith(word) for name in names) for word in words)

    return [found for found in reservations if words and matches(found)]


def _without_hyphens(name: str) -> str:
    """Return `name` folded, with spaces for hyphens, so that "Anne-Marie" equals "Anne Marie"."""
    return fold(name).replace("-", " ")


def _names_table(name: str, number: str, word: str) -> bool:
    """Whether `word`, which must be folded, is part of the table's name or equals its number."""
    return word in fold(name) or word == fold(number)


def is_name(text: str) -> bool:
    """Whether `text` could be a name.

    A name has at most 80 characters and consists of words of letters. Its first word has at least
    two letters, which may follow one letter and an apostrophe, as in M'barek.
    """
    folded = fold(text).strip()
    return len(folded) <= _NAME_MAX and _NAME.fullmatch(folded) is not None


def _matches(reservation: Reservation, query: str, by_phone: Callable[[str, str], bool]) -> bool:
    phone = _digits(reservation.customer_phone)
    return all(
        _matches_word(reservation, word) or by_phone(phone, _read_number(word))
        for word in fold(query).split()
    ) or by_phone(phone, _read_number(query))


def _matches_word(reservation: Reservation, word: str) -> bool:
    code = (reservation.access_code or "").lower()
    return (
        _without_hyphens(word) in _without_hyphens(reservation.customer_name or "")
        or _names_table(reservation.table_name, reservation.table_number, word)
        or (bool(code) and word in {code, code[4:], code.replace("-", "")})
    )


def _read_number(query: str) -> str:
    """Return the digits of `query` if it looks like all or part of a phone number, else `""`."""
    folded = fold(query)
    digits = _digits(folded)
    is_number = all(sign.isdecimal() or sign in "+-./() " for sign in folded)
    return digits if is_number and len(digits) >= _FEWEST_DIGITS else ""


def _contains(phone: str, number: str) -> bool:
    return bool(number) and (number in phone or _is_same_number(phone, number))


def _ends_or_equals(phone: str, number: str) -> bool:
    if len(number) == _LAST_DIGITS:
        return phone.endswith(number)
    return _is_same_number(phone, number)


def _is_same_number(phone: str, number: str) -> bool:
    """Whether `phone` and `number` are the same phone number.

    One of them may lack the country code or the leading 0.
    """
    short, long = sorted((phone.lstrip("0"), number.lstrip("0")), key=len)
    if len(short) < _NATIONAL_DIGITS:
        return short == long != ""
    return long.endswith(short) and (
        short == long or _COUNTRY_CODE.fullmatch(long[: -len(short)]) is not None
    )


def _digits(text: str | None) -> str:
    return "".join(sign for sign in fold(text or "") if sign.isdecimal())


Order = Literal["slot", "evening", "latest-evening", "newest"]
_ORDERS = {
    "slot": "r.date, r.slot, r.created_at, r.id",  # the order of `GET /v1/reservations`
    "evening": "r.date, r.starts, r.created_at, r.id",
    "latest-evening": "r.date DESC, r.starts, r.created_at, r.id",
    "newest": "r.created_at DESC, r.id DESC",
}


# A reservation with no name, phone number or code, such as an erased one, can match only by its
# table.
_MAY_MATCH = """(r.customer_name IS NOT NULL OR r.customer_phone IS NOT NULL
    OR r.access_code IS NOT NULL OR r.table_id IN (SELECT value FROM json_each(:tables)))"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A search filter. Empty and None members match everything.

    `first` and `last` are dates (YYYY-MM-DD), both included.
    """

    first: str | None = None
    last: str | None = None
    statuses: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    text: str = ""
    order: Order = "evening"
    reference: tuple[str, str] | None = None  # (key lineage, externalRef)
    updated_since: int | None = None  # in ms since 1970, inclusive


def page_found(
    reader: Reader, wanted: Wanted, page: int, limit: int
) -> tuple[list[Reservation], int]:
    """Return page `page` (1 is the first) of the results, and the total number of results."""
    begin = (page - 1) * limit
    if wanted.text:  # `_iterate` compares names in Python to ignore case and accents
        shown, total = [], 0
        for total, found in enumerate(_iterate(reader, wanted), 1):
            if begin < total <= begin + limit:
                shown.append(found)
        return shown, total
    where, values = _conditions(reader, wanted)
    sql = f"SELECT count(*) FROM reservation r {WITH_REQUEST} WHERE {where}"  # noqa: S608
    total = reader.value(sql, values)
    return list(_iterate(reader, wanted, begin, limit)), int(total)


def list_found(reader: Reader, wanted: Wanted) -> list[str]:
    """Return the id of every result, in the order `wanted.order`."""
    if wanted.text:
        return [found.id for found in _iterate(reader, wanted)]
    where, values = _conditions(reader, wanted)
    sql = f"""SELECT r.id FROM reservation r {WITH_REQUEST} WHERE {where}
              ORDER BY {_ORDERS[wanted.order]}"""  # noqa: S608
    return [row[0] for row in reader.rows(sql, values)]


def _iterate(
    reader: Reader, wanted: Wanted, begin: int = 0, limit: int = -1
) -> Iterator[Reservation]:
    where, values = _conditions(reader, wanted)
    sql = f"""SELECT {RESERVATION_COLUMNS} {RESERVATION_FROM} WHERE {where}
              ORDER BY {_ORDERS[wanted.order]} LIMIT :limit OFFSET :begin"""
    rows = reader.rows(sql, {**values, "limit": limit, "begin": min(begin, 2**62)})
    for row in rows:
        found = Reservation(*row)
        if not wanted.text or fits(found, wanted.text):
            yield found


def _conditions(reader: Reader, wanted: Wanted) -> tuple[str, dict[str, Any]]:
    """Return the SQL condition for a filter, and its parameters."""
    words = fold(wanted.text).split()
    tables = [
        table.id for table in (list_tables(reader) if words else ())
        if any(_names_table(table.name, table.number, word) for word in words)
    ]  # fmt: skip
    lineage, reference = wanted.reference or (None, None)
    conditions = {
        _MAY_MATCH: bool(wanted.text),
        "r.date >= :first": wanted.first is not None,
        "r.date <= :last": wanted.last is not None,
        "q.lineage = :lineage AND r.external_ref = :reference": wanted.reference is not None,
        "r.updated_at >= :updated_since": wanted.updated_since is not None,
        "r.status IN (SELECT value FROM json_each(:statuses))": bool(wanted.statuses),
        "r.source IN (SELECT value FROM json_each(:sources))": bool(wanted.sources),
    }
    values = {
        "tables": json.dumps(tables), "first": wanted.first, "last": wanted.last,
        "lineage": lineage, "reference": reference, "updated_since": wanted.updated_since,
        "statuses": json.dumps(wanted.statuses), "sources": json.dumps(wanted.sources),
    }  # fmt: skip
    return " AND ".join(sql for sql, is_set in conditions.items() if is_set) or "1", values


@dataclass(frozen=True, slots=True)
class TableAvailability:
    """A table's availability.

    `blocked_by` is the source of the reservation that holds the table. It is None if the table is
    free or not bookable.
    """

    table: Table
    available: bool
    blocked_by: str | None


def find_availability(
    tables: Iterable[Table], holds: Iterable[Hold], wanted: tuple[int, int],
    *, closed: bool = False,
) -> list[TableAvailability]:  # fmt: skip
    """Return each table's availability (interface, section 2.4).

    `holds` must be sorted, oldest first. A table must be free during
    `wanted`, which is [starts, ends) in minutes after midnight. If `closed` is True, no table is
    available. `blocked_by` is the source of the oldest overlapping hold.
    """
    blocked: dict[str, str] = {}
    for hold in holds:
        if overlap(wanted, (hold.starts, hold.ends)):
            blocked.setdefault(hold.table_id, hold.source)
    return [
        TableAvailability(
            table,
            available=table.bookable and not closed and table.id not in blocked,
            blocked_by=blocked.get(table.id) if table.bookable else None,
        )
        for table in tables
    ]


def read_availability(
    reader: Reader, day: date, slot: Slot | None, *, closed: bool = False
) -> list[TableAvailability]:
    """Return each table's availability for a slot, or for the whole evening if `slot` is None.

    If the venue is closed on `day` or `closed` is True, no table is available.
    """
    closed = closed or find_closing(reader, day.isoformat()) is not None
    hours = interval(slot, get_venue(reader).evening_ends_at)
    holds = list_holds(reader, day.isoformat())
    return find_availability(list_tables(reader), holds, hours, closed=closed)
