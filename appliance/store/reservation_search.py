"""Finding reservations of any evening, as staff look for them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from appliance.model.folded import fold
from appliance.model.guest_search import fits, names_table
from appliance.model.reservation import Reservation
from appliance.store.connection import Reader
from appliance.store.reservations import RESERVATION_COLUMNS, RESERVATION_FROM
from appliance.store.venue import list_tables

Order = Literal["slot", "evening", "latest-evening", "newest"]
_ORDERS = {
    "slot": "r.date, r.slot, r.created_at, r.id",  # as partners list them (interface, section 4)
    "evening": "r.date, r.starts, r.created_at, r.id",
    "latest-evening": "r.date DESC, r.starts, r.created_at, r.id",
    "newest": "r.created_at DESC, r.id DESC",
}


_KNOWN = """(r.customer_name IS NOT NULL OR r.customer_phone IS NOT NULL
    OR r.access_code IS NOT NULL OR r.table_id IN (SELECT value FROM json_each(:tables)))"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for; what is empty or None excludes nothing. Dates are YYYY-MM-DD."""

    first: str | None = None
    last: str | None = None
    statuses: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    text: str = ""
    order: Order = "evening"


def page_found(
    reader: Reader, wanted: Wanted, page: int, limit: int
) -> tuple[list[Reservation], int]:
    """A page of what was found, and how many there are."""
    begin = (page - 1) * limit
    if wanted.text:  # names are compared without case and accents, which SQL cannot
        shown, total = [], 0
        for total, found in enumerate(_iterate(reader, wanted), 1):
            if begin < total <= begin + limit:
                shown.append(found)
        return shown, total
    where, values = _conditions(reader, wanted)
    total = reader.value(f"SELECT count(*) FROM reservation r WHERE {where}", values)  # noqa: S608
    return list(islice(_iterate(reader, wanted, begin, limit), limit)), int(total)


def list_found(reader: Reader, wanted: Wanted) -> list[int]:
    """The `seq` of everything that was found, in its order."""
    if wanted.text:
        return [found.seq for found in _iterate(reader, wanted)]
    where, values = _conditions(reader, wanted)
    sql = f"SELECT r.seq FROM reservation r WHERE {where} ORDER BY {_ORDERS[wanted.order]}"  # noqa: S608
    return [row[0] for row in reader.rows(sql, values)]


def list_by_seq(reader: Reader, seqs: Iterable[int]) -> list[Reservation]:
    """Those reservations, in that order, but for those that are gone."""
    sql = f"SELECT {RESERVATION_COLUMNS} {RESERVATION_FROM} WHERE r.seq = :seq"
    found = (reader.one(Reservation, sql, {"seq": seq}) for seq in seqs)
    return [reservation for reservation in found if reservation is not None]


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
    conditions: list[str] = ["1"]
    values: dict[str, Any] = {}
    if wanted.text:  # of whom nothing is known any more, that is of most, only the table is left
        conditions.append(_KNOWN)
        words = fold(wanted.text).split()
        values["tables"] = json.dumps([
            table.id for table in list_tables(reader)
            if any(names_table(table.name, table.number, word) for word in words)
        ])  # fmt: skip
    if wanted.first is not None:
        conditions.append("r.date >= :first")
        values["first"] = wanted.first
    if wanted.last is not None:
        conditions.append("r.date <= :last")
        values["last"] = wanted.last
    for column, chosen in (("status", wanted.statuses), ("source", wanted.sources)):
        if chosen:
            names = [f"{column}_{i}" for i in range(len(chosen))]
            conditions.append(f"r.{column} IN ({', '.join(':' + name for name in names)})")
            values |= dict(zip(names, chosen, strict=True))
    return " AND ".join(conditions), values
