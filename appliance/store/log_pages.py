"""The door log as staff read it: an evening's scans, filtered, a page at a time."""

import json
from dataclasses import dataclass
from typing import Any

from appliance.model.verdict import COLOURS
from appliance.store.connection import Reader

_REFUSED = json.dumps([name for name, colour in COLOURS.items() if colour in {"amber", "red"}])
_FROM = """
    FROM scan s
    JOIN terminal t ON t.id = s.terminal_id
    LEFT JOIN reservation r ON r.id = s.reservation_id
    LEFT JOIN venue_table vt ON vt.id = r.table_id
"""
_IS_REFUSED = (
    "s.admitted = 0 AND s.undoes IS NULL AND s.result IN (SELECT value FROM json_each(:refusals))"
)


@dataclass(frozen=True, slots=True)
class LogFilter:
    """What of the log is wanted. `text` is part of a name, a code or a table."""

    refused: bool = False
    terminal_id: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A scan as it is listed; `happened_at` where a door was out of the box's reach."""

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
        """green, amber, red or grey."""
        return COLOURS.get(self.result, "grey")


@dataclass(frozen=True, slots=True)
class LogPage:
    """The newest first. `total` counts what fits; the others count the whole evening."""

    entries: tuple[LogEntry, ...]
    total: int
    scans: int
    admitted: int
    refused: int


def page_log(
    reader: Reader, since: int, until: int, wanted: LogFilter, size: int, number: int
) -> LogPage:
    """Page `number` (from 1) of what was scanned in [since, until)."""
    bounds: dict[str, Any] = {"since": since, "until": until, "refusals": _REFUSED}
    where = "s.at >= :since AND s.at < :until"
    sql = f"""SELECT count(*), coalesce(sum(s.admitted), 0), coalesce(sum({_IS_REFUSED}), 0)
              FROM scan s WHERE {where}"""  # noqa: S608 - conditions from the code
    scans, admitted, refused = reader.row(sql, bounds) or (0, 0, 0)
    values = dict(bounds)
    if wanted.refused:
        where += f" AND {_IS_REFUSED}"
    if wanted.terminal_id is not None:
        where += " AND s.terminal_id = :terminal_id"
        values["terminal_id"] = wanted.terminal_id
    if wanted.text:
        where += """ AND (instr(lower(coalesce(r.customer_name, '')), lower(:text))
            OR instr(lower(coalesce(r.access_code, '')), lower(:text))
            OR lower(coalesce(vt.number, '')) = lower(:text))"""
        values["text"] = wanted.text
    total = reader.value(f"SELECT count(*) {_FROM} WHERE {where}", values)
    sql = f"""SELECT s.seq, s.at, s.happened_at, t.name, s.staff_id, s.kind, s.result, s.admitted,
                     s.reason, s.reservation_id, r.customer_name, r.access_code, vt.number
              {_FROM} WHERE {where} ORDER BY s.seq DESC LIMIT :size OFFSET :skip"""
    rows = reader.rows(sql, {**values, "size": size, "skip": (number - 1) * size})
    return LogPage(tuple(LogEntry(*row) for row in rows), total, scans, admitted, refused)
