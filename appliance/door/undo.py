"""Undo a scan: take back who came in or went out, announce it, and log it."""

from appliance.core.errors import ChangedMeanwhile, NothingToUndo, field_invalid
from appliance.database.connection import Transaction, known
from appliance.door.check_in import (
    Admission,
    Decided,
    find_admission,
    find_last_admission,
    log_scan,
    recall,
)
from appliance.door.scan import compensation_id
from appliance.door.terminals import Terminal, get_terminal
from appliance.door.verdict import Verdict, see
from appliance.outbox import announce
from appliance.reservations.change import cancel
from appliance.reservations.model import OPEN_STATUSES, Reservation
from appliance.reservations.rows import add_history, get_reservation, update_reservation
from appliance.staff.model import StaffMember

_UNDO_WITHOUT_REASON_MS = 10_000


def undo_check_in(tx: Transaction, terminal: Terminal, scan_id: str, reason: str | None) -> Decided:
    """Undo a scan. Requires a reason if the scan is older than 10 s or from another terminal.

    If nobody in the party remains inside, `checkedInAt` becomes null. A second undo returns the
    first undo's result. Raises NotFound if the scan is unknown, NothingToUndo if it admitted
    nobody, and ValidationError if a reason is required but missing.
    """
    return _undo(tx, terminal, known(_find_scan(tx, terminal, scan_id)), reason)


def undo_latest(
    tx: Transaction, terminal: Terminal, reservation_id: str, arrived: int | None, reason: str
) -> Decided:
    """Undo a party's latest check-in, made on any terminal.

    `arrived` is the number of people who were inside when the user chose to undo. If this number
    has changed, raises ChangedMeanwhile, so that a repeated request does not undo a second
    check-in. If `arrived` is None, the number is not compared. Raises NotFound if the reservation
    is unknown, and NothingToUndo if it has no check-in to undo.
    """
    reservation = get_reservation(tx, reservation_id)
    if arrived is not None and reservation.arrived != arrived:
        raise ChangedMeanwhile
    return _undo(tx, terminal, _get_latest(tx, reservation), reason)


def undo_by_staff(
    tx: Transaction, reservation_id: str, person: StaffMember, reason: str
) -> Decided:
    """Undo a party's latest check-in from the portal.

    Raises NotFound if the reservation is unknown, and NothingToUndo if it has no check-in to undo.
    """
    latest = _get_latest(tx, get_reservation(tx, reservation_id))
    return _undo(tx, get_terminal(tx, latest.terminal_id), latest, reason, person.id)


def _get_latest(tx: Transaction, reservation: Reservation) -> Admission:
    latest = find_last_admission(tx, reservation.id)
    if latest is None:
        raise NothingToUndo(state=reservation.status)
    return latest


def _undo(
    tx: Transaction, terminal: Terminal, admission: Admission, reason: str | None,
    staff_id: str | None = None,
) -> Decided:  # fmt: skip
    if admission.undo is not None:
        return recall(tx, admission.undo)
    if not admission.is_counted:
        raise NothingToUndo(state=admission.result)
    is_recent = tx.now - admission.at <= _UNDO_WITHOUT_REASON_MS
    if reason is None and not (is_recent and admission.terminal_id == terminal.id):
        raise field_invalid(
            "reason", "a reason is required after 10 seconds, or from another terminal."
        )
    return revert_scan(tx, terminal, admission, reason, staff_id)


def revert_scan(
    tx: Transaction, terminal: Terminal, admission: Admission, reason: str | None,
    staff_id: str | None = None,
) -> Decided:  # fmt: skip
    """Undo the entry or exit of a scan, which is not undone yet, and log this."""
    actor = f"staff:{staff_id}" if staff_id else f"terminal:{terminal.id}"
    people = admission.admitted, admission.moved
    decided = _revert(tx, admission.reservation_id, *people, actor)
    log_scan(
        tx, terminal, f"undo:{admission.seq}", "undo", decided.verdict,
        reason=reason, undoes=admission.seq, staff_id=staff_id,
    )  # fmt: skip
    return decided


def _find_scan(tx: Transaction, terminal: Terminal, scan_id: str) -> Admission | None:
    """Return the scan with that id, or None.

    If the box refused the scan, but the terminal had admitted the party offline, return the
    admission, which was logged as a separate scan (see `compensation_id`).
    """
    found = find_admission(tx, terminal.id, scan_id)
    if found is None or found.is_counted:
        return found
    compensation = find_admission(tx, found.terminal_id, compensation_id(scan_id))
    if compensation is not None and compensation.terminal_id == found.terminal_id:
        return compensation
    return found


def _revert(
    tx: Transaction, reservation_id: str | None, people: int, moved: int, actor: str
) -> Decided:
    """Take back `people` who came in and `moved` who came back in, or, if negative, went out.

    Nobody is taken back twice. A walk-in of whom nobody remains is cancelled.
    """
    if reservation_id is None:
        return Decided(Verdict("undone", admitted=-people, moved=-moved), ())
    reservation = get_reservation(tx, reservation_id)
    remaining = max(0, reservation.arrived - people)
    most = remaining if people else max(remaining, reservation.people_out)
    out = min(max(0, reservation.people_out + moved), most)
    taken, gone = remaining - reservation.arrived, reservation.people_out - out
    is_reverted = taken < 0 and not remaining
    changes = {"checked_in_at": None} if is_reverted else {}
    update_reservation(tx, reservation.id, arrived=remaining, people_out=out, **changes)
    add_history(tx, reservation.id, "undone", actor, people=abs(people + moved))
    if is_reverted:
        announce(tx, "reservation.checkin_reverted", reservation.id)
        if reservation.walk_in and reservation.status in OPEN_STATUSES:  # nobody will come
            cancel(tx, reservation.id, actor=actor, notify=False)
    now = get_reservation(tx, reservation.id)
    return Decided(Verdict("undone", see(now), admitted=taken, moved=gone), (now,))


def lower_arrived(tx: Transaction, terminal: Terminal, reservation_id: str, scan_id: str) -> None:
    """Lower the number of people who arrived to the booked number, if more did, and log it."""
    reservation = get_reservation(tx, reservation_id)
    surplus = reservation.arrived - reservation.guests
    if surplus > 0:
        decided = _revert(tx, reservation_id, surplus, 0, f"terminal:{terminal.id}")
        log_scan(tx, terminal, scan_id, "undo", decided.verdict)
