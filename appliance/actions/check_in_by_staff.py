"""Check in from the portal: the same decision and the same door log as at a terminal."""

from appliance.actions.check_in import check_in
from appliance.actions.log_scan import Decided
from appliance.actions.undo_check_in import undo_check_in
from appliance.house_errors import NothingToUndo
from appliance.model.scan import Reading, Scan
from appliance.model.staff import StaffMember
from appliance.model.terminal import PORTAL_TERMINAL_ID
from appliance.store.connection import Transaction
from appliance.store.reservations import get_reservation
from appliance.store.scans import find_last_admission
from appliance.store.terminals import get_portal_terminal, get_terminal, insert_portal_terminal


def check_in_by_staff(
    tx: Transaction, person: StaffMember, reservation_id: str, scan_id: str,
    *, arrivals: int | None, reason: str | None, early_minutes: int,
) -> Decided:  # fmt: skip
    """The verdict, `person` named in the door log; with a `reason` it overrides amber and red.

    The same `scan_id` is one check-in, however often the form is sent. NotFound.
    """
    get_reservation(tx, reservation_id)
    scan = Scan(
        scan_id, Reading("list", (reservation_id,)), arrivals=arrivals, reason=reason, staff=person
    )
    if get_portal_terminal(tx) is None:
        insert_portal_terminal(tx)
    return check_in(tx, get_terminal(tx, PORTAL_TERMINAL_ID), scan, early_minutes)


def undo_by_staff(
    tx: Transaction, reservation_id: str, person: StaffMember, reason: str
) -> Decided:
    """Take back the latest check-in of that party, at whichever door; NothingToUndo."""
    latest = find_last_admission(tx, reservation_id)
    if latest is None:
        raise NothingToUndo(state=get_reservation(tx, reservation_id).status)
    terminal_id, scan_id = latest
    # A scan id is its terminal's own: it is looked up where the scan was made.
    return undo_check_in(tx, get_terminal(tx, terminal_id), scan_id, reason, staff_id=person.id)
