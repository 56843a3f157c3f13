"""Read the scan log: search it, and export it as CSV or JSON."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from appliance.core.text import BYTE_ORDER_MARK, write_cell, write_cells
from appliance.database.connection import Reader
from appliance.door.check_in import NOT_UNDONE, OLDEST_MS
from appliance.door.verdict import COLOURS, FirstCheckIn
from appliance.reservations.search import matches_text
from appliance.venue.model import evening_end, get_venue

_REFUSALS = json.dumps([name for name, colour in COLOURS.items() if colour in {"amber", "red"}])
_FROM = """
    FROM scan_log s
    JOIN terminal t ON t.id = s.terminal_id
    LEFT JOIN reservation r ON r.id = s.reservation_id
    LEFT JOIN venue_table vt ON vt.id = r.table_id
"""
# An offline scan belongs to the period in which it happened. The box stores it up to OLDEST_MS and
# one minute later. The limits on `at` let the search use the index `scan_log_at`.
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
    moved: int
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
              FROM scan_log s WHERE {_IN_PERIOD}"""  # noqa: S608
    scans, admitted, refused = reader.row(sql, values) or (0, 0, 0)
    where = f"""{_IN_PERIOD}
        AND (NOT :only_refused OR {_IS_REFUSED})
        AND (:terminal_id IS NULL OR s.terminal_id = :terminal_id)
        AND (:found IS NULL OR s.reservation_id IN (SELECT value FROM json_each(:found)))"""  # noqa: S608
    total = reader.value(f"SELECT count(*) {_FROM} WHERE {where}", values)
    sql = f"""SELECT s.seq, s.at, s.happened_at, t.name, s.staff_id, s.kind, s.result, s.admitted,
                     s.moved, s.reason, s.reservation_id, r.customer_name, r.access_code, vt.number
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


Format = Literal["json", "csv"]
_PAGE_ROWS = 1000
_NO_END = 1 << 62
_STORED = (
    "seq", "scan_id", "terminal_id", "at", "device_at", "kind", "read_hash", "reservation_id",
    "result", "admitted", "moved", "undoes", "staff_id", "happened_at",
)  # fmt: skip
_INSTANTS = ("at", "device_at", "happened_at")
_NAMES = ("terminal", "staff", "table", "first_name", "access_code", "reason")


class Export:
    """An export of the evenings from `since` to `until`, both included, written in pages.

    Use a new reader for each page, so that a long export does not keep a read transaction open.
    Dates are evenings by the time at which the box received a scan. Names that were erased are
    null.
    """

    def __init__(
        self, reader: Reader, kind: Format, since: date | None, until: date | None
    ) -> None:
        """Prepare an export.

        If `since` is None, the export starts with the first scan. If `until` is None, it ends with
        the last scan.
        """
        venue = get_venue(reader)
        self.count = 0
        self._kind = kind
        self._zone = reader.zones.zone(venue.time_zone)
        first = since and evening_end(since - timedelta(days=1), self._zone, venue.evening_ends_at)
        end = until and evening_end(until, self._zone, venue.evening_ends_at)
        self._period = {"first": first or 0, "end": end or _NO_END}
        self._after = 0
        self._last = int(reader.value("SELECT coalesce(max(seq), 0) FROM scan_log"))
        times = [f"{name}_{place}" for name in _INSTANTS for place in ("utc", "venue")]
        self._columns = [*_STORED, *times, *_NAMES]

    def begin(self) -> bytes:
        """Return the start of the file: the CSV column names, or the bracket of a JSON list."""
        if self._kind == "csv":
            return BYTE_ORDER_MARK + write_cells(self._columns) + b"\r\n"
        return b"["

    def page(self, reader: Reader) -> bytes:
        """Return the next rows, or `b""` after the last row."""
        columns = ", ".join(f"s.{name}" for name in _STORED)
        sql = f"""SELECT {columns}, t.name, staff.name, vt.name, r.customer_name, r.access_code,
                         s.reason
                  FROM scan_log s
                  LEFT JOIN terminal t ON t.id = s.terminal_id
                  LEFT JOIN staff ON staff.id = s.staff_id
                  LEFT JOIN reservation r ON r.id = s.reservation_id
                  LEFT JOIN venue_table vt ON vt.id = r.table_id
                  WHERE s.seq > :after AND s.seq <= :last
                    AND s.at >= :first AND s.at < :end
                  ORDER BY s.seq LIMIT :limit"""  # noqa: S608
        values = {**self._period, "after": self._after, "last": self._last, "limit": _PAGE_ROWS}
        rows = list(reader.rows(sql, values))
        self._after = rows[-1][0] if rows else self._last
        return b"".join(self._write(self._values(row)) for row in rows)

    def end(self) -> bytes:
        """Return the end of the file."""
        return b"" if self._kind == "csv" else b"\n]\n"

    def _values(self, row: tuple[Any, ...]) -> list[Any]:
        stored = dict(zip(_STORED, row, strict=False))
        times = [
            _format_time(stored[name], zone) for name in _INSTANTS for zone in (UTC, self._zone)
        ]
        terminal, staff, table, customer_name, access_code, reason = row[len(_STORED) :]
        first_name = next(iter((customer_name or "").split()), None)
        values = [*stored.values(), *times, terminal, staff, table, first_name, access_code, reason]
        return [value.hex() if isinstance(value, bytes) else value for value in values]

    def _write(self, values: list[Any]) -> bytes:
        self.count += 1
        if self._kind == "csv":
            return write_cells([write_cell(value) for value in values]) + b"\r\n"
        row = dict(zip(self._columns, values, strict=True))
        text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        return (b"\n" if self.count == 1 else b",\n") + text.encode()


def _format_time(instant: int | None, zone: Any) -> str | None:
    if instant is None:
        return None
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=instant)
        return time.astimezone(zone).isoformat(timespec="milliseconds")
    except OverflowError:  # terminals can send any number as their time
        return None


def list_first_check_ins(reader: Reader, date: str) -> dict[str, FirstCheckIn]:
    """Return the first check-in of each party that is inside on the evening `date` (YYYY-MM-DD).

    The result maps reservation ids to check-ins, whose `clock` is empty.
    """
    # With min(), SQLite takes the other columns from the row with the minimum.
    sql = f"""SELECT r.id, coalesce(s.happened_at, s.at), t.name, staff.name, min(s.seq)
              FROM reservation r
              JOIN scan_log s ON s.reservation_id = r.id AND {NOT_UNDONE}
              JOIN terminal t ON t.id = s.terminal_id
              LEFT JOIN staff ON staff.id = s.staff_id
              WHERE r.date = :date AND r.arrived > 0 GROUP BY r.id"""  # noqa: S608
    rows = reader.rows(sql, {"date": date})
    return {id_: FirstCheckIn(at, "", name, by) for id_, at, name, by, _ in rows}
