"""The scan log (table `scan`), whose rows are linked by a hash chain, and its queries."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from appliance.core.text import fold
from appliance.database.connection import Reader, Transaction
from appliance.door.terminals import Terminal
from appliance.door.verdict import COLOURS, Verdict
from appliance.reservations.model import Reservation
from appliance.reservations.rows import find_reservation
from appliance.staff.audit_log import START, find_break

CHAINED = (
    "seq", "scan_id", "terminal_id", "at", "device_at", "kind", "read_hash", "reservation_id",
    "result", "admitted", "undoes", "staff_id", "happened_at",
)  # fmt: skip

OLDEST_MS = 48 * 3600 * 1000  # an offline scan's maximum age when the box receives it

_encode = json.JSONEncoder(default=bytes.hex, separators=(",", ":")).encode
_NOT_UNDONE = "s.admitted > 0 AND NOT EXISTS (SELECT 1 FROM scan u WHERE u.undoes = s.seq)"
_ADMISSION = "s.seq, s.terminal_id, s.at, s.reservation_id, s.result, s.admitted"


@dataclass(frozen=True, slots=True)
class Admission:
    """A scan that a terminal or staff may want to undo.

    `at` is in ms since 1970. `undo` is the verdict of the undo, as JSON, or None if the scan was
    not undone.
    """

    seq: int
    terminal_id: str
    at: int
    reservation_id: str | None
    result: str
    admitted: int
    undo: str | None


def find_admission(reader: Reader, terminal_id: str, scan_id: str) -> Admission | None:
    """Return the scan with that id, or None.

    If several terminals used the id, prefers this terminal's scan, then the latest scan.
    """
    sql = f"""SELECT {_ADMISSION}, u.verdict
              FROM terminal t
              JOIN scan s ON s.terminal_id = t.id AND s.scan_id = :scan_id
              LEFT JOIN scan u ON u.undoes = s.seq
              ORDER BY t.id = :terminal_id DESC, s.seq DESC LIMIT 1"""  # noqa: S608
    return reader.one(Admission, sql, {"terminal_id": terminal_id, "scan_id": scan_id})


def find_last_admission(reader: Reader, reservation_id: str) -> Admission | None:
    """Return the reservation's latest admission that was not undone, or None."""
    sql = f"""SELECT {_ADMISSION}, NULL FROM scan s
              WHERE s.reservation_id = :id AND {_NOT_UNDONE} ORDER BY s.seq DESC LIMIT 1"""  # noqa: S608
    return reader.one(Admission, sql, {"id": reservation_id})


def find_first_admission(
    reader: Reader, reservation_id: str
) -> tuple[int, int, str | None, str | None] | None:
    """Return the reservation's first admission that was not undone, or None.

    The result is (row number, ms since 1970, terminal's name, staff member's name).
    """
    sql = f"""SELECT s.seq, coalesce(s.happened_at, s.at), t.name, staff.name
              FROM scan s
              JOIN terminal t ON t.id = s.terminal_id
              LEFT JOIN staff ON staff.id = s.staff_id
              WHERE s.reservation_id = :id AND {_NOT_UNDONE} ORDER BY s.seq LIMIT 1"""  # noqa: S608
    return reader.row(sql, {"id": reservation_id})


def list_first_admissions(
    reader: Reader, date: str
) -> dict[str, tuple[int, str | None, str | None]]:
    """Return the first admission of each party that is inside, for one evening (YYYY-MM-DD).

    The result maps the reservation id to (ms since 1970, terminal's name, staff member's name).
    """
    # With min(), SQLite takes the other columns from the row with the minimum.
    sql = f"""SELECT r.id, coalesce(s.happened_at, s.at), t.name, staff.name, min(s.seq)
              FROM reservation r
              JOIN scan s ON s.reservation_id = r.id AND {_NOT_UNDONE}
              JOIN terminal t ON t.id = s.terminal_id
              LEFT JOIN staff ON staff.id = s.staff_id
              WHERE r.date = :date AND r.arrived > 0 GROUP BY r.id"""  # noqa: S608
    return {id_: (at, name, by) for id_, at, name, by, _ in reader.rows(sql, {"date": date})}


def add_scan(tx: Transaction, values: dict[str, Any]) -> int:
    """Append a row with the columns `values` to the log and its hash chain. Return its number.

    The time is `tx.now` unless `values` sets `at`.
    """
    last = tx.row("SELECT seq, hash FROM scan ORDER BY seq DESC LIMIT 1")
    seq, previous = (1, START) if last is None else (last[0] + 1, last[1])
    row = {"seq": seq, "at": tx.now, **values}
    tx.insert("scan", row | {"hash": follow(previous, [row.get(name) for name in CHAINED])})
    return int(seq)


def count_scans(reader: Reader) -> int:
    """Return the number of rows in the log."""
    return int(reader.value("SELECT count(*) FROM scan"))


def find_broken_link(reader: Reader) -> int | None:
    """Return the number of the first row that breaks the hash chain, or None.

    If old rows were deleted, the first remaining row cannot be checked.
    """
    rows = reader.rows(f"SELECT hash, {', '.join(CHAINED)} FROM scan ORDER BY seq")  # noqa: S608
    return find_break(rows, follow)


def follow(previous: bytes, row: list[Any]) -> bytes:
    """Return a row's hash: the SHA-256 of the previous row's hash and the columns in CHAINED."""
    return hashlib.sha256(previous + _encode(row).encode()).digest()


@dataclass(frozen=True, slots=True)
class LoggedScan:
    """A row of the log.

    `chained` has the columns in CHAINED, which the hash covers. `table`, `customer_name` and
    `access_code` come from the reservation. Erased text is None.
    """

    chained: tuple[Any, ...]
    hash: bytes
    reason: str | None
    terminal: str
    staff: str | None
    table: str | None
    customer_name: str | None
    access_code: str | None

    @property
    def seq(self) -> int:
        """The row's number in the log, from 1."""
        return int(self.chained[0])


@dataclass(frozen=True, slots=True)
class LogRange:
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


def list_scans(reader: Reader, after: int, last: int, limit: int = -1) -> Iterator[LoggedScan]:
    """Return up to `limit` rows with a number greater than `after` and at most `last`, in order.

    A negative `limit` means no limit.
    """
    columns = ", ".join(f"s.{name}" for name in CHAINED)
    sql = f"""SELECT {columns}, s.hash, s.reason, t.name, staff.name, vt.name,
                     r.customer_name, r.access_code
              FROM scan s
              LEFT JOIN terminal t ON t.id = s.terminal_id
              LEFT JOIN staff ON staff.id = s.staff_id
              LEFT JOIN reservation r ON r.id = s.reservation_id
              LEFT JOIN venue_table vt ON vt.id = r.table_id
              WHERE s.seq > :after AND s.seq <= :last
              ORDER BY s.seq LIMIT :limit"""  # noqa: S608
    rows = reader.rows(sql, {"after": after, "last": last, "limit": limit})
    return (LoggedScan(row[: len(CHAINED)], *row[len(CHAINED) :]) for row in rows)


def list_types(reader: Reader) -> dict[str, str]:
    """Return a map from each chained column to its SQLite type, in the order of CHAINED."""
    types = {name: kind for _, name, kind, *_ in reader.rows("PRAGMA table_info(scan)")}
    return {name: types[name] for name in CHAINED}


def list_log_keys(reader: Reader) -> list[bytes]:
    """Return every public key that may have signed an export, including retired keys."""
    return [row[0] for row in reader.rows("SELECT public_key FROM signing_key ORDER BY kid")]


_REFUSALS = json.dumps([name for name, colour in COLOURS.items() if colour in {"amber", "red"}])
_FROM = """
    FROM scan s
    JOIN terminal t ON t.id = s.terminal_id
    LEFT JOIN reservation r ON r.id = s.reservation_id
    LEFT JOIN venue_table vt ON vt.id = r.table_id
"""
# An offline scan counts at the time when it happened, and is stored shortly after it is received.
# The limits of `at` let the search use the index `scan_at`.
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
    wanted = fold(text)
    return [
        id_ for id_, name, code, number in reader.rows(sql, period)
        if wanted in fold(name or "") or wanted in fold(code or "") or wanted == fold(number or "")
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decided:
    """A verdict and the current rows of the reservations it mentions."""

    verdict: Verdict
    reservations: tuple[Reservation, ...]


def log_scan(
    tx: Transaction, terminal: Terminal, scan_id: str, kind: str, verdict: Verdict, **details: Any
) -> int:
    """Append a verdict to the log and return its row number.

    `details` sets further columns of `scan`.
    """
    values = {
        "scan_id": scan_id, "terminal_id": terminal.id, "kind": kind,
        "reservation_id": verdict.reservation.id if verdict.reservation else None,
        "result": verdict.result, "admitted": verdict.admitted, "verdict": verdict.to_json(),
    }  # fmt: skip
    seq = add_scan(tx, values | details)
    if verdict.admitted:
        tx.notices.append(DoorChanged(tx.now, terminal.id, scan_id, verdict))
    return seq


def find_decided(tx: Transaction, terminal_id: str, scan_id: str) -> Decided | None:
    """Return the stored decision for a terminal's scan, or None if the scan is new."""
    sql = "SELECT verdict FROM scan WHERE terminal_id = :terminal_id AND scan_id = :scan_id"
    stored = tx.value(sql, {"terminal_id": terminal_id, "scan_id": scan_id})
    return None if stored is None else recall(tx, stored)


def recall(tx: Transaction, stored: str) -> Decided:
    """Parse a stored verdict and read the current rows of the reservations it mentions."""
    verdict = Verdict.from_json(stored)
    seen = (*verdict.candidates, verdict.reservation)
    found = (find_reservation(tx, reservation.id) for reservation in seen if reservation)
    return Decided(verdict, tuple(reservation for reservation in found if reservation))


@dataclass(frozen=True, slots=True)
class DoorChanged:
    """Change notice: a scan admitted `verdict.admitted` people.

    For an undo, the number is negative.
    """

    at: int
    terminal_id: str
    scan_id: str
    verdict: Verdict
