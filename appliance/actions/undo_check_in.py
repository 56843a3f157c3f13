"""Undo a check-in: take back the people that one scan let in (docs/decisions/door.md)."""

import json

from appliance.actions.announce import announce
from appliance.actions.log_scan import Decided, log_scan, recall
from appliance.errors import field_invalid
from appliance.house_errors import ChangedMeanwhile, NothingToUndo
from appliance.model.scan import unheard_id
from appliance.model.terminal import Terminal
from appliance.model.verdict import Verdict, see
from appliance.store.connection import Transaction, known
from appliance.store.reservations import add_history, get_reservation, update_reservation
from appliance.store.scans import Admission, find_admission, find_last_admission

WITHOUT_A_WORD_MS = 10_000


def undo_check_in(
    tx: Transaction, terminal: Terminal, scan_id: str, reason: str | None,
    *, staff_id: str | None = None,
) -> Decided:  # fmt: skip
    """Take back a scan: within 10 s by the same terminal without a word, else with a reason.

    `checkedInAt` becomes null when nobody of the party remains in. A second undo gets the
    answer of the first. NotFound for an unknown scan, NothingToUndo when it let nobody in,
    ValidationError when a reason is missing.
    """
    return _undo(tx, terminal, known(_find(tx, terminal, scan_id)), reason, staff_id)


def undo_latest(
    tx: Transaction, terminal: Terminal, reservation_id: str, arrived: int | None, reason: str
) -> Decided:
    """Take back the latest check-in of that party, at whichever door it was.

    ChangedMeanwhile when not `arrived` are in, so that the same wish never takes back two.
    NotFound; NothingToUndo when nobody of the party is in.
    """
    reservation = get_reservation(tx, reservation_id)
    if arrived is not None and reservation.arrived != arrived:
        raise ChangedMeanwhile
    latest = find_last_admission(tx, reservation_id)
    admission = None if latest is None else find_admission(tx, *latest)
    if admission is None:
        raise NothingToUndo(state=reservation.status)
    return _undo(tx, terminal, admission, reason, None)


def _undo(
    tx: Transaction, terminal: Terminal, admission: Admission, reason: str | None,
    staff_id: str | None,
) -> Decided:  # fmt: skip
    if admission.undo is not None:
        return recall(tx, admission.undo)
    if admission.admitted <= 0 or admission.reservation_id is None:
        raise NothingToUndo(state=admission.result)
    if reason is None and _needs_a_reason(tx, terminal, admission):
        raise field_invalid("reason", "late_undo")
    actor = f"staff:{staff_id}" if staff_id else f"terminal:{terminal.id}"
    decided = _take_back(tx, admission.reservation_id, admission.admitted, actor)
    log_scan(
        tx, terminal, f"undo:{admission.seq}", "undo", decided.verdict,
        reason=reason, undoes=admission.seq, staff_id=staff_id,
    )  # fmt: skip
    return decided


def _find(tx: Transaction, terminal: Terminal, scan_id: str) -> Admission | None:
    """The scan of that id; where the box's no was not heard, that which counted its people."""
    found = find_admission(tx, terminal.id, scan_id)
    if found is None or found.admitted > 0:
        return found
    counted = find_admission(tx, found.terminal_id, unheard_id(scan_id))
    is_its = counted is not None and counted.terminal_id == found.terminal_id
    return counted if is_its else found


def _needs_a_reason(tx: Transaction, terminal: Terminal, admission: Admission) -> bool:
    fresh = tx.now - admission.at <= WITHOUT_A_WORD_MS
    return not (fresh and admission.terminal_id == terminal.id)


def _take_back(tx: Transaction, reservation_id: str, people: int, actor: str) -> Decided:
    reservation = get_reservation(tx, reservation_id)
    remaining = max(0, reservation.arrived - people)
    changes = {} if remaining else {"checked_in_at": None}
    update_reservation(tx, reservation_id, arrived=remaining, **changes)
    add_history(tx, reservation_id, "undone", actor, json.dumps({"people": people}))
    if not remaining:
        announce(tx, "reservation.checkin_reverted", reservation_id)  # if asked for
    verdict = Verdict("undone", see(reservation, arrived=remaining), admitted=-people)
    return Decided(verdict, (reservation,))
