"""Search for reservations by name, code, table or phone number, and for available tables."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from appliance.core.phone_numbers import contains, ends_or_equals, is_asked_for
from appliance.core.text import fold, words
from appliance.database.connection import Reader
from appliance.reservations.holds import Hold, list_holds
from appliance.reservations.model import Reservation
from appliance.reservations.rows import (
    RESERVATION_COLUMNS,
    RESERVATION_FROM,
    WITH_REQUEST,
)
from appliance.venue.model import (
    Slot,
    Table,
    find_closing,
    find_closure,
    find_tonight,
    find_zone,
    get_venue,
    has_ended,
    interval,
    list_closings,
    list_slots,
    list_tables,
    may_be_booked,
    offered_slots,
    overlap,
)

_NAME_MAX = 80
_NAME = re.compile(r"[^\W\d_]{2,}(?:[\s.-]+[^\W\d_]+)*")


def search(reservations: Iterable[Reservation], query: str) -> list[Reservation]:
    """Return the reservations that match every word of `query`, or all of them if it is blank.

    Terminals use this search. A phone number matches only as a whole or by its last four digits,
    so that a number cannot be guessed digit by digit at a terminal (docs/security.md, S4).
    """
    return [found for found in reservations if _matches(found, query, ends_or_equals)]


def fits(reservation: Reservation, query: str) -> bool:
    """Whether every word of `query` matches the reservation.

    A word of digits may match any part of the phone number. If `query` as a whole is a number that
    contains spaces, it is also compared with the phone number as a single number.
    """
    return _matches(reservation, query, contains)


def asks_phone(query: str) -> bool:
    """Whether `query`, or a word in it, is a number that `search` compares with phone numbers."""
    return any(is_asked_for(text) for text in (query, *query.split()))


def search_by_name(reservations: Iterable[Reservation], query: str) -> list[Reservation]:
    """Return the reservations whose customer's name matches every word of `query`.

    A word matches if a word in the name begins with it. A hyphen separates words, as a space does.
    The result is empty for a blank `query`.
    """
    wanted = words(query)

    def matches(reservation: Reservation) -> bool:
        names = words(reservation.customer_name or "")
        return all(any(name.startswith(word) for name in names) for word in wanted)

    return [found for found in reservations if wanted and matches(found)]


def matches_text(query: str, text: str, exact: Iterable[str] = ()) -> bool:
    """Whether each word of `query` is part of the words in `text`, or equals one of `exact`.

    The words are folded. The pages do the same (web/frontend/src/shared/text_folding.ts).
    """
    names, others = _joined(text), {_joined(one) for one in exact}
    return all(part in names or part in others for part in _parts(query))


def _joined(text: str) -> str:
    return " ".join(words(text))


_joined_of_table = lru_cache(maxsize=1024)(_joined)  # names and numbers of tables


@lru_cache(maxsize=8)  # each query is compared with many reservations
def _parts(query: str) -> tuple[str, ...]:
    return tuple(_joined(part) for part in query.split())


def is_name(text: str) -> bool:
    """Whether `text` could be a name.

    A name has at most 80 characters and consists of words of letters. Its first word has at least
    two letters, apart from apostrophes.
    """
    folded = fold(text).replace("'", "").strip()
    return len(folded) <= _NAME_MAX and _NAME.fullmatch(folded) is not None


Compare = Callable[[str | None, Iterable[str], str], bool]


def _matches(reservation: Reservation, query: str, by_phone: Compare) -> bool:
    typed, numbers = reservation.customer_phone, reservation.phone_numbers
    texts = [_joined(reservation.customer_name or ""), _joined_of_table(reservation.table_name)]
    code = (reservation.access_code or "").lower()
    exact = {
        _joined_of_table(reservation.table_number),
        code.replace("-", " "), code.replace("-", ""), code[4:],
    }  # fmt: skip
    return all(
        any(part in text for text in texts) or part in exact or by_phone(typed, numbers, word)
        for word, part in zip(query.split(), _parts(query), strict=True)
    ) or by_phone(typed, numbers, query)


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
    tables = [
        table.id for table in (list_tables(reader) if wanted.text else ())
        if any(matches_text(word, table.name, [table.number]) for word in wanted.text.split())
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


class FreeSlot(NamedTuple):
    """A slot of an evening, and the ids of the tables that are free in it."""

    slot: str
    free: list[str]


class FreeDay(NamedTuple):
    """An evening (YYYY-MM-DD). `closed` is True if nothing can be booked on it."""

    date: str
    closed: bool
    slots: list[FreeSlot]


def find_free(reader: Reader, first: date, last: date, guests: int | None) -> list[FreeDay]:
    """Return the bookable tables that are free in each slot from `first` to `last`, inclusive.

    If `guests` is given, only tables that seat so many. On evenings that are past or too far ahead,
    none is free.
    """
    venue, zone, slots, now = get_venue(reader), find_zone(reader), list_slots(reader), reader.now
    closings, tonight = list_closings(reader), find_tonight(reader)
    tables = [
        table.id for table in list_tables(reader)
        if table.bookable and (guests is None or table.seats(guests))
    ]  # fmt: skip
    held: defaultdict[str, list[Hold]] = defaultdict(list)
    for hold in list_holds(reader, first.isoformat(), last.isoformat()):
        held[hold.date].append(hold)
    hours = {slot.id: interval(slot, venue.evening_ends_at) for slot in slots}
    days = []
    for day in (first + timedelta(n) for n in range((last - first).days + 1)):
        holds, offered = held[day.isoformat()], []
        closed = find_closure(venue, closings, day.isoformat()) is not None
        is_open = not closed and may_be_booked(day, tonight)
        for slot in offered_slots(slots, day):
            starts, ends = hours[slot.id]
            taken = {hold.table_id for hold in holds if hold.starts < ends and starts < hold.ends}
            has_free = is_open and not (day <= tonight and has_ended(slot, day, venue, zone, now))
            free = [id_ for id_ in tables if id_ not in taken] if has_free else []
            offered.append(FreeSlot(slot.start, free))
        days.append(FreeDay(day.isoformat(), closed, offered))
    return days


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
