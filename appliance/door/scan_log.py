"""Read the scan log: check its hash chain, list its rows, and search them."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from appliance.database.connection import Reader
from appliance.door.check_in import CHAINED, OLDEST_MS, follow
from appliance.door.verdict import COLOURS
from appliance.reservations.search import matches_text
from appliance.staff.audit_log import START, find_break


def count_scans(reader: Reader) -> int:
    """Return the number of rows in the log."""
    return int(reader.value("SELECT count(*) FROM scan"))


def find_broken_link(reader: Reader) -> int | None:
    """Return the number of the first row that breaks the hash chain, or None.

    If old rows were deleted, the first remaining row cannot be checked.
    """
    rows = reader.rows(f"SELECT hash, {', '.join(CHAINED)} FROM scan ORDER BY seq")  # noqa: S608
    return find_break(rows, follow)


class LoggedScan(NamedTuple):
    """A row of the log.

    `chained` holds the columns in CHAINED, which the hash covers. `names` holds four names
    (terminal, staff member, table and customer), then the access code and the reason. An erased
    text is None.
    """

    chained: tuple[Any, ...]
    hash: bytes
    names: tuple[str | None, ...]

    @property
    def seq(self) -> int:
        """The row's number in the log, from 1."""
        return int(self.chained[0])


class LogRange(NamedTuple):
    """A range of row numbers in the log, both ends included.

    `previous` is the hash of the row before the range, or None if that row was deleted.
    """

    first: int
    last: int
    previous: bytes | None


def find_log_range(reader: Reader, since: int | None, until: int | None) -> LogRange | None:
    """Return the range that includes every scan in [since, until), or None if there is no scan.

    Times are in ms since 1970; None means no limit. The range has no gaps. Therefore, if the clock
    was set back, it may include scans from other times.
    """
    sql = """SELECT min(seq), max(seq) FROM scan
             WHERE at >= coalesce(:since, at) AND (:until IS NULL OR at < :until)"""
    row = reader.row(sql, {"since": since, "until": until})
    if row is None or row[0] is None:
        return None
    previous: bytes | None = START
    if row[0] > 1:
        previous = reader.value("SELECT hash FROM scan WHERE seq = :seq", {"seq": row[0] - 1})
    return LogRange(row[0], row[1], previous)


def list_scans(reader: Reader, after: int, last: int, limit: int) -> list[LoggedScan]:
    """Return up to `limit` rows with a number greater than `after` and at most `last`, in order."""
    columns = ", ".join(f"s.{name}" for name in CHAINED)
    sql = f"""SELECT {columns}, s.hash, t.name, staff.name, vt.name, r.customer_name,
                     r.access_code, s.reason
              FROM scan s
              LEFT JOIN terminal t ON t.id = s.terminal_id
              LEFT JOIN staff ON staff.id = s.staff_id
              LEFT JOIN reservation r ON r.id = s.reservation_id
              LEFT JOIN venue_table vt ON vt.id = r.table_id
              WHERE s.seq > :after AND s.seq <= :last
              ORDER BY s.seq LIMIT :limit"""  # noqa: S608
    rows = reader.rows(sql, {"after": after, "last": last, "limit": limit})
    size = len(CHAINED)
    return [LoggedScan(row[:size], row[size], row[size + 1 :]) for row in rows]


def list_types(reader: Reader) -> dict[str, str]:
    """Return a map from each chained column to its SQLite type, in the order of CHAINED."""
    types = {name: kind for _, name, kind, *_ in reader.rows("PRAGMA table_info(scan)")}
    return {name: types[name] for name in CHAINED}


_REFUSALS = json.dumps([name for name, colour in COLOURS.items() if colour in {"amber", "red"}])
_FROM = """
    FROM scan s
    JOIN terminal t ON t.id = s.terminal_id
    LEFT JOIN reservation r ON r.id = s.reservation_id
    LEFT JOIN venue_table vt ON vt.id = r.table_id
"""
# An offline scan belongs to the period in which it happened. The box stores it up to OLDEST_MS and
# one minute later. The limits on `at` let the search use the index `scan_at`.
_IN_PERIOD = f"""s.at >= :since AND s.at < :until + {OLDEST_MS + 60_000}
    AND coalesce(s.happened_at, s.at) >= :since AND coalesce(s.happened_at, s.at) < :until"""
_IS_REFUSED = (
    "s.admitted = 0 AND s.undoes IS NULL AND s.result IN (SELECT value FROM json_each(:refusals))"
)


@dataclass(frozen=True, slots=True)
class LogFilter:
    """A filter for the log.

    `refused` selects refused scans only. `text` matches part of a customer's name or access code,
    or a whole table number.
    """

    refused: bool = False
    terminal_id: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A scan in a list. Times are in ms since 1970. `happened_at` is set only for offline scans."""

    seq: int
    at: int
    happened_at: int | None
    terminal: str
    staff_id: str | None
    kind: str
    result: str
    admitted: int
    reason: str | None
    reservation_id: str | None
    customer_name: str | None
    access_code: str | None
    table: str | None

    @property
    def colour(self) -> str:
        """The colour of the result: green, amber, red or grey."""
        return COLOURS.get(self.result, "grey")


@dataclass(frozen=True, slots=True)
class LogPage:
    """A page of the log, newest first.

    `total` is the number of scans that match the filter. `scans`, `admitted` (people) and `refused`
    are counted over the whole period, without the filter.
    """

    entries: tuple[LogEntry, ...]
    total: int
    scans: int
    admitted: int
    refused: int


def page_log(
    reader: Reader, since: int, until: int, wanted: LogFilter, size: int, number: int
) -> LogPage:
    """Return page `number` (from 1) of the scans in [since, until) that match `wanted`.

    Times are in ms since 1970. A page has up to `size` entries.
    """
    values = {
        "since": since, "until": until, "refusals": _REFUSALS, "only_refused": wanted.refused,
        "terminal_id": wanted.terminal_id,
    }  # fmt: skip
    values["found"] = json.dumps(_find_guests(reader, values, wanted.text)) if wanted.text else None
    sql = f"""SELECT count(*), coalesce(sum(s.admitted), 0), coalesce(sum({_IS_REFUSED}), 0)
              FROM scan s WHERE {_IN_PERIOD}"""  # noqa: S608
    scans, admitted, refused = reader.row(sql, values) or (0, 0, 0)
    where = f"""{_IN_PERIOD}
        AND (NOT :only_refused OR {_IS_REFUSED})
        AND (:terminal_id IS NULL OR s.terminal_id = :terminal_id)
        AND (:found IS NULL OR s.reservation_id IN (SELECT value FROM json_each(:found)))"""  # noqa: S608
    total = reader.value(f"SELECT count(*) {_FROM} WHERE {where}", values)
    sql = f"""SELECT s.seq, s.at, s.happened_at, t.name, s.staff_id, s.kind, s.result, s.admitted,
                     s.reason, s.reservation_id, r.customer_name, r.access_code, vt.number
              {_FROM} WHERE {where} ORDER BY s.seq DESC LIMIT :size OFFSET :skip"""
    rows = reader.rows(sql, {**values, "size": size, "skip": (number - 1) * size})
    return LogPage(tuple(LogEntry(*row) for row in rows), total, scans, admitted, refused)


def _find_guests(reader: Reader, period: dict[str, Any], text: str) -> list[str]:
    """Return the ids of the reservations scanned in `period` that match `LogFilter.text`."""
    sql = f"""SELECT DISTINCT r.id, r.customer_name, r.access_code, vt.number
              {_FROM} WHERE r.id IS NOT NULL AND {_IN_PERIOD}"""
    return [
        id_ for id_, name, code, number in reader.rows(sql, period)
        if matches_text(text, f"{name or ''} {code or ''}", [number or ""])
    ]  # fmt: skip
