"""Rows of `door_conflict`: who was let in twice by doors out of each other's reach."""

from typing import Any

from appliance.model.conflict import Admitted, Conflict
from appliance.store.connection import Reader, Transaction, known

_SELECT = """
    SELECT c.id, c.kind, c.despite, c.reservation_id, c.arrived, c.guests,
           s.terminal_id, st.name, coalesce(s.happened_at, s.at),
           o.terminal_id, ot.name, coalesce(o.happened_at, o.at),
           c.found_at, c.acknowledged_at, s.reason
    FROM door_conflict c
    JOIN scan s ON s.seq = c.scan_seq
    JOIN terminal st ON st.id = s.terminal_id
    LEFT JOIN scan o ON o.seq = c.other_seq
    LEFT JOIN terminal ot ON ot.id = o.terminal_id
"""


def add_conflict(
    tx: Transaction, scan_seq: int, other_seq: int | None, kind: str, despite: str,
    reservation_id: str | None, party: tuple[int, int],
) -> str:  # fmt: skip
    """Write down a conflict that the scan of that number made; its id. `party`: arrived, guests."""
    conflict_id, (arrived, guests) = tx.new_id(), party
    tx.insert(
        "door_conflict",
        {"id": conflict_id, "scan_seq": scan_seq, "other_seq": other_seq,
         "reservation_id": reservation_id, "kind": kind, "despite": despite, "arrived": arrived,
         "guests": guests, "found_at": tx.now},
    )  # fmt: skip
    return conflict_id


def find_conflict(reader: Reader, conflict_id: str) -> Conflict | None:
    """The conflict of that id."""
    return reader.one(_conflict, f"{_SELECT} WHERE c.id = :id", {"id": conflict_id})


def get_conflict(reader: Reader, conflict_id: str) -> Conflict:
    """The conflict of that id, or NotFound."""
    return known(find_conflict(reader, conflict_id))


def find_conflict_of_scan(reader: Reader, terminal_id: str, scan_id: str) -> Conflict | None:
    """The conflict that this terminal's scan made."""
    sql = f"{_SELECT} WHERE s.terminal_id = :terminal_id AND s.scan_id = :scan_id"
    return reader.one(_conflict, sql, {"terminal_id": terminal_id, "scan_id": scan_id})


def list_open_conflicts(reader: Reader) -> list[Conflict]:
    """Every conflict that nobody has acknowledged, the oldest first."""
    rows = reader.rows(f"{_SELECT} WHERE c.acknowledged_at IS NULL ORDER BY c.found_at, c.id")
    return [_conflict(*row) for row in rows]


def _conflict(*row: Any) -> Conflict:
    (*head, terminal_id, terminal, at), other, tail = row[:9], row[9:12], row[12:]
    second = None if other[0] is None else Admitted(*other)
    return Conflict(*(*head, Admitted(terminal_id, terminal, at), second, *tail))
