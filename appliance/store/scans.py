"""Rows of `scan`: the door log, each row chained to the one before."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from appliance.store.connection import Reader, Transaction

_START = bytes(32)
_CHAINED = (
    "seq", "scan_id", "terminal_id", "at", "device_at", "kind", "read_hash", "reservation_id",
    "result", "admitted", "undoes", "staff_id", "happened_at",
)  # fmt: skip

_encode = json.JSONEncoder(default=bytes.hex, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Admission:
    """A scan that may be undone. `undo` is the verdict of the undo that took it back."""

    seq: int
    terminal_id: str
    at: int
    reservation_id: str | None
    result: str
    admitted: int
    undo: str | None


def find_verdict(reader: Reader, terminal_id: str, scan_id: str) -> str | None:
    """What this terminal was answered to this scan, as JSON."""
    verdict: str | None = reader.value(
        "SELECT verdict FROM scan WHERE terminal_id = :terminal_id AND scan_id = :scan_id",
        {"terminal_id": terminal_id, "scan_id": scan_id},
    )
    return verdict


def find_scan_seq(reader: Reader, terminal_id: str, scan_id: str) -> int | None:
    """The number of this terminal's scan of that id."""
    seq: int | None = reader.value(
        "SELECT seq FROM scan WHERE terminal_id = :terminal_id AND scan_id = :scan_id",
        {"terminal_id": terminal_id, "scan_id": scan_id},
    )
    return seq


def find_first_admission_seq(reader: Reader, reservation_id: str, *, before: int) -> int | None:
    """The number of the first scan, not taken back since, that let some of a party in."""
    seq: int | None = reader.value(
        """SELECT min(seq) FROM scan s
           WHERE reservation_id = :id AND admitted > 0 AND seq < :before
               AND NOT EXISTS (SELECT 1 FROM scan u WHERE u.undoes = s.seq)""",
        {"id": reservation_id, "before": before},
    )
    return seq


def find_admission(reader: Reader, terminal_id: str, scan_id: str) -> Admission | None:
    """The scan of that id: this terminal's own, else the latest of another terminal."""
    row = reader.row(
        """SELECT s.seq, s.terminal_id, s.at, s.reservation_id, s.result, s.admitted, u.verdict
           FROM terminal t
           JOIN scan s ON s.terminal_id = t.id AND s.scan_id = :scan_id
           LEFT JOIN scan u ON u.undoes = s.seq
           ORDER BY t.id = :terminal_id DESC, s.seq DESC LIMIT 1""",
        {"terminal_id": terminal_id, "scan_id": scan_id},
    )
    return None if row is None else Admission(*row)


def find_first_admission(
    reader: Reader, reservation_id: str
) -> tuple[int, str | None, str | None] | None:
    """When the first of a party still in came in, at which terminal, let in by which staff."""
    row = reader.row(
        """SELECT coalesce(s.happened_at, s.at), t.name, staff.name
           FROM scan s
           JOIN terminal t ON t.id = s.terminal_id
           LEFT JOIN staff ON staff.id = s.staff_id
           WHERE s.reservation_id = :id AND s.admitted > 0
               AND NOT EXISTS (SELECT 1 FROM scan u WHERE u.undoes = s.seq)
           ORDER BY s.seq LIMIT 1""",
        {"id": reservation_id},
    )
    return None if row is None else (row[0], row[1], row[2])


def list_first_admissions(
    reader: Reader, date: str
) -> dict[str, tuple[int, str | None, str | None]]:
    """What `find_first_admission` tells, of every party of that evening that is in, by its id."""
    rows = reader.rows(
        """SELECT s.reservation_id, coalesce(s.happened_at, s.at), t.name, staff.name
           FROM reservation r
           JOIN scan s ON s.seq = (
               SELECT min(a.seq) FROM scan a
               WHERE a.reservation_id = r.id AND a.admitted > 0
                   AND NOT EXISTS (SELECT 1 FROM scan u WHERE u.undoes = a.seq))
           JOIN terminal t ON t.id = s.terminal_id
           LEFT JOIN staff ON staff.id = s.staff_id
           WHERE r.date = :date AND r.arrived > 0""",
        {"date": date},
    )
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


def find_last_admission(reader: Reader, reservation_id: str) -> tuple[str, str] | None:
    """The latest scan, not taken back since, that let some of a party in: terminal, scan id."""
    row = reader.row(
        """SELECT terminal_id, scan_id FROM scan s
           WHERE reservation_id = :id AND admitted > 0
               AND NOT EXISTS (SELECT 1 FROM scan u WHERE u.undoes = s.seq)
           ORDER BY seq DESC LIMIT 1""",
        {"id": reservation_id},
    )
    return None if row is None else (row[0], row[1])


def add_scan(tx: Transaction, values: dict[str, Any]) -> int:
    """Append a row at `tx.now` and chain it; its number. `values` are columns of `scan`."""
    last = tx.row("SELECT seq, hash FROM scan ORDER BY seq DESC LIMIT 1")
    seq, previous = (1, _START) if last is None else (last[0] + 1, last[1])
    row = {"seq": seq, "at": tx.now, **values}
    tx.insert("scan", row | {"hash": _chain(previous, [row.get(name) for name in _CHAINED])})
    return int(seq)


def count_scans(reader: Reader) -> int:
    """How many rows the log has."""
    return int(reader.value("SELECT count(*) FROM scan"))


def find_broken_link(reader: Reader) -> int | None:
    """The first row of the log that does not follow from the one before, or None.

    Where old rows were removed, the first that is kept is taken at its word.
    """
    previous = None
    rows = reader.rows(f"SELECT hash, {', '.join(_CHAINED)} FROM scan ORDER BY seq")  # noqa: S608
    for found, *row in rows:
        if previous is None and row[0] != 1:
            previous = found
            continue
        if found != _chain(previous or _START, row):
            return int(row[0])
        previous = found
    return None


def _chain(previous: bytes, row: list[Any]) -> bytes:
    return hashlib.sha256(previous + _encode(row).encode()).digest()
