"""Synchronise the scans that a terminal handled offline, and record the resulting conflicts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from appliance.core.errors import TooManyWrongCodes
from appliance.database.connection import Reader, Transaction, known
from appliance.door.check_in import (
    Decided,
    decide_and_count,
    find_decided,
    find_first_admission,
    keep_scan,
)
from appliance.door.scan import Scan, compensation_id
from appliance.door.terminals import Terminal
from appliance.door.undo import lower_arrived
from appliance.door.verdict import Verdict
from appliance.outbox import ConflictChanged

ADMITTED_TWICE = "admitted_twice"  # more people were admitted than were booked
ADMITTED_ANYWAY = "admitted_anyway"  # the box would have refused the party


@dataclass(frozen=True, slots=True)
class Admitted:
    """The terminal that admitted a party, and the time (ms since 1970).

    For an offline scan, `at` is the time on the terminal's clock, converted to the box's clock.
    """

    terminal_id: str
    terminal: str
    at: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """A row of `door_conflict`. `despite` is the result that the box would have given.

    `this` is the admission that caused the conflict. `other` is the party's first admission, if
    that was earlier. `arrived` and `guests` are the reservation's values at the time of the
    conflict. If the reservation is unknown, they are 0 and `reservation_id` is None. Times are in
    ms since 1970.
    """

    id: str
    kind: str
    despite: str
    reservation_id: str | None
    arrived: int
    guests: int
    this: Admitted
    other: Admitted | None
    acknowledged_at: int | None
    reason: str | None = None

    @property
    def lacked_role(self) -> bool:
        """Whether the terminal gave a reason for the admission but lacked the `override` role.

        A terminal with that role causes no such conflict if it gives a reason.
        """
        return self.kind == ADMITTED_ANYWAY and self.reason is not None


_SELECT = """
    SELECT c.id, c.kind, c.despite, c.reservation_id, c.arrived, c.guests,
           s.terminal_id, st.name, coalesce(s.happened_at, s.at),
           o.terminal_id, ot.name, coalesce(o.happened_at, o.at),
           c.acknowledged_at, s.reason
    FROM door_conflict c
    JOIN scan_log s ON s.seq = c.scan_seq
    JOIN terminal st ON st.id = s.terminal_id
    LEFT JOIN scan_log o ON o.seq = c.other_seq
    LEFT JOIN terminal ot ON ot.id = o.terminal_id
"""


def find_conflict(reader: Reader, conflict_id: str) -> Conflict | None:
    """Return the conflict with this id, or None."""
    return reader.one(_conflict, f"{_SELECT} WHERE c.id = :id", {"id": conflict_id})


def get_conflict(reader: Reader, conflict_id: str) -> Conflict:
    """Return the conflict with this id. Raises NotFound if there is none."""
    return known(find_conflict(reader, conflict_id))


def find_conflict_of_scan(reader: Reader, terminal_id: str, scan_id: str) -> Conflict | None:
    """Return the conflict that a terminal's scan caused, or None."""
    sql = f"{_SELECT} WHERE s.terminal_id = :terminal_id AND s.scan_id = :scan_id"
    return reader.one(_conflict, sql, {"terminal_id": terminal_id, "scan_id": scan_id})


def list_open_conflicts(reader: Reader) -> list[Conflict]:
    """Return all unacknowledged conflicts, oldest first."""
    rows = reader.rows(f"{_SELECT} WHERE c.acknowledged_at IS NULL ORDER BY c.found_at, c.id")
    return [_conflict(*row) for row in rows]


def _conflict(*row: Any) -> Conflict:
    other = None if row[9] is None else Admitted(*row[9:12])
    return Conflict(*(*row[:6], Admitted(*row[6:9]), other, *row[12:]))


# Results that cause a conflict even if the terminal has the `override` role, unless it gave a
# reason. `not_yet` and `too_late` are not included. They depend on the time of the scan, which
# may be wrong because the terminal's clock is wrong.
_ALWAYS_CONFLICT = frozenset({"cancelled", "declined", "revoked", "not_confirmed", "payment_due"})


Synced = tuple[Decided, Conflict | None]  # the response to one synchronised scan


def sync_scans(tx: Transaction, terminal: Terminal, scans: Sequence[Scan]) -> list[Synced]:
    """Store offline `scans`, which must be in chronological order, and return the responses.

    Parties that the terminal admitted are counted, because they are inside. An admission is a
    conflict if

    - more people came than were booked,
    - the reservation is unknown (the party is then not counted),
    - the terminal gave no reason, and the reservation was cancelled, declined, not confirmed or not
      fully paid, or its pass was replaced, or
    - the terminal now lacks the `override` role, and the box would have refused the party. This
      applies even if the terminal gave a reason.

    A scan id from the same terminal always gets the same response, online or offline.

    Wrong codes are counted as in `check_in()`. After ten wrong codes within a minute, further
    codes are not looked up. They are logged as unknown, and cause a conflict if the terminal
    admitted a party.
    """
    return [_sync(tx, terminal, scan) for scan in scans]


def _sync(tx: Transaction, terminal: Terminal, scan: Scan) -> Synced:
    earlier = find_decided(tx, terminal.id, scan.id)
    if earlier is not None:
        conflict = find_conflict_of_scan(tx, terminal.id, scan.id)
        if conflict is None and _refused_too_late(earlier.verdict, scan):
            return _sync(tx, terminal, replace(scan, id=compensation_id(scan.id)))
        return earlier, conflict
    try:
        decided = decide_and_count(tx, terminal, scan)
    except TooManyWrongCodes:
        decided = Decided(Verdict("unknown_code"), ())
    seq = keep_scan(tx, terminal, scan, decided.verdict)
    kind = _conflict_kind(terminal, decided.verdict, scan)
    conflict = _add_conflict(tx, decided.verdict, seq, kind) if kind else None
    return decided, conflict


def _refused_too_late(verdict: Verdict, scan: Scan) -> bool:
    """Whether the box refused a scan after the terminal had admitted the party offline.

    The caller then stores the admission as a separate scan, because the party is inside.
    """
    return scan.was_let_in and verdict.admitted <= 0 and verdict.colour != "green"


def _conflict_kind(terminal: Terminal, verdict: Verdict, scan: Scan) -> str | None:
    if not scan.was_let_in or scan.leaving or scan.reading.kind == "walk_in":
        return None
    seen = verdict.reservation
    if seen is None:
        return ADMITTED_ANYWAY
    is_overfull = verdict.admitted and seen.arrived > seen.guests
    if is_overfull and not scan.overfills(verdict.overrode or ""):
        return ADMITTED_TWICE
    if terminal.may("override"):
        against = scan.reason is None and verdict.overrode in _ALWAYS_CONFLICT
    else:
        against = verdict.overrode is not None
    return ADMITTED_ANYWAY if against else None


def _add_conflict(tx: Transaction, verdict: Verdict, seq: int, kind: str) -> Conflict:
    values = {
        "id": tx.new_id(), "scan_seq": seq, "kind": kind, "found_at": tx.now, "arrived": 0,
        "guests": 0, "despite": verdict.overrode or verdict.result,
    }  # fmt: skip
    if seen := verdict.reservation:
        values |= {"reservation_id": seen.id, "arrived": seen.arrived, "guests": seen.guests}
        first = find_first_admission(tx, seen.id)
        if first and first[0] < seq:
            values["other_seq"] = first[0]
    tx.insert("door_conflict", values)
    tx.notices.append(ConflictChanged(str(values["id"])))
    return get_conflict(tx, str(values["id"]))


def acknowledge_conflict(
    tx: Transaction, conflict_id: str, *, actor: str, corrects: Terminal | None = None
) -> Conflict:
    """Mark a conflict as acknowledged. Idempotent. Raises NotFound if it is unknown.

    `actor` is `staff:<id>` or `terminal:<id>`. The number of people inside does not change, unless
    the terminal `corrects` it: then the people beyond the booked number were counted twice.
    """
    conflict = get_conflict(tx, conflict_id)
    if conflict.acknowledged_at is None:
        if corrects is not None and conflict.reservation_id is not None:
            lower_arrived(tx, corrects, conflict.reservation_id, f"correct:{conflict.id}")
        tx.update("door_conflict", conflict_id, acknowledged_at=tx.now, acknowledged_by=actor)
        tx.notices.append(ConflictChanged(conflict_id))
    return get_conflict(tx, conflict_id)
