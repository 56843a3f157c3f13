"""Parties that the door handles without a code: walk-ins, and those that leave for good.

See the interface, section 3.
"""

from dataclasses import replace
from datetime import date

from appliance.core.errors import InvalidSlot
from appliance.database.connection import Reader, Transaction
from appliance.door.check_in import (
    Decided,
    check_in,
    find_admission,
    log_scan,
)
from appliance.door.scan import UNREAD, Reading, Scan
from appliance.door.terminals import Terminal, get_portal_terminal
from appliance.door.undo import revert_scan
from appliance.door.verdict import Verdict, see
from appliance.reservations.create import enter_by_staff, list_fitting
from appliance.reservations.leave import leave, take_back
from appliance.reservations.model import Reservation
from appliance.reservations.request import Booking
from appliance.reservations.rows import get_reservation, update_reservation
from appliance.staff.model import StaffMember
from appliance.venue.model import (
    Slot,
    Table,
    find_tonight,
    find_zone,
    get_venue,
    has_ended,
    interval,
    list_slots,
    offered_slots,
)

_LEFT = "left:"  # prefix of the scan id of an exit recorded when a table was freed


def seat_walk_in(
    tx: Transaction, person: StaffMember, table_id: str, slot: str | None, guests: int,
    *, form_id: str, over_capacity: bool = False,
) -> Reservation:  # fmt: skip
    """Book a table for tonight without a name, and check the whole party in.

    `slot` is None for the whole evening. Idempotent for each `form_id`. Raises the errors of
    `enter_by_staff`, and InvalidSlot if the slot begins later than in the venue's `early_minutes`.
    """
    decided = _seat(
        tx, get_portal_terminal(tx), Scan(form_id, UNREAD, staff=person), table_id, slot, guests,
        over_capacity=over_capacity,
    )  # fmt: skip
    return get_reservation(tx, decided.reservations[0].id)


def seat_at_door(table_id: str, tx: Transaction, terminal: Terminal, scan: Scan) -> Decided:
    """Book a table for the current slot, and check the whole party in from a terminal.

    Idempotent for each scan id. Raises the errors of `enter_by_staff`, and InvalidSlot if no slot
    is on.
    """
    _, slot = _present(tx)
    start = slot.start if slot else None
    return _seat(tx, terminal, scan, table_id, start, scan.arrivals or 1)


def _seat(
    tx: Transaction, terminal: Terminal, scan: Scan, table_id: str, slot: str | None, guests: int,
    *, over_capacity: bool = False,
) -> Decided:  # fmt: skip
    booking = Booking(
        table_id, find_tonight(tx), slot, guests, "", None, None, idempotency_key=scan.id
    )
    actor = f"staff:{scan.staff.id}" if scan.staff else f"terminal:{terminal.id}"
    made = enter_by_staff(tx, booking, actor=actor, over_capacity=over_capacity, walk_in=True)
    decided = check_in(tx, terminal, replace(scan, reading=Reading("list", (made.id,))))
    if decided.verdict.result == "not_yet":
        raise InvalidSlot(field="slot")
    return decided


def list_walk_in_tables(reader: Reader, guests: int) -> tuple[Slot | None, list[Table]]:
    """Return the current slot, or None for the whole evening, and its free tables, best first.

    Raises InvalidSlot if no slot is on.
    """
    day, slot = _present(reader)
    return slot, list_fitting(reader, day, slot, guests)


def _present(reader: Reader) -> tuple[date, Slot | None]:
    """Return tonight, and its first slot that has not ended, or None if it has no slots."""
    venue, zone, day = get_venue(reader), find_zone(reader), find_tonight(reader)
    ends_at = venue.evening_ends_at
    slots = sorted(offered_slots(list_slots(reader), day), key=lambda s: interval(s, ends_at))
    if not slots:
        return day, None
    for slot in slots:
        if not has_ended(slot, day, venue, zone, reader.now):
            return day, slot
    raise InvalidSlot(field="slot")


def party_left(
    tx: Transaction, reservation_id: str, *, actor: str, terminal: Terminal | None = None
) -> Reservation:
    """Record that the party has left: count out the people still inside, and free its tables.

    The scan log names `terminal`, by default the portal's. Raises the errors of `leave`.
    """
    before = get_reservation(tx, reservation_id)
    left = leave(tx, reservation_id, actor=actor)
    if before.inside:
        update_reservation(tx, reservation_id, people_out=before.arrived, went_out_at=tx.now)
        seen = see(get_reservation(tx, reservation_id))
        verdict = Verdict("went_out", seen, moved=-before.inside)
        at = terminal or get_portal_terminal(tx)
        exit_id = f"{_LEFT}{left.version}-{left.seq}"  # the scan ids of terminals contain no colon
        log_scan(tx, at, exit_id, "list", verdict, staff_id=_staff_id(actor))
    return get_reservation(tx, reservation_id)


def party_stays(
    tx: Transaction, reservation_id: str, *, actor: str, terminal: Terminal | None = None
) -> Reservation:
    """Undo `party_left` or `mark_no_show`. Raises the errors of `take_back`."""
    take_back(tx, reservation_id, actor=actor)
    at = terminal or get_portal_terminal(tx)
    last = find_admission(tx, at.id, _find_exit(tx, reservation_id))
    if last is not None and last.undo is None:
        revert_scan(tx, at, last, None, _staff_id(actor))
    return get_reservation(tx, reservation_id)


def _find_exit(reader: Reader, reservation_id: str) -> str:
    """Return the scan id of the latest exit by which the table was freed, or ""."""
    sql = f"""SELECT scan_id FROM scan_log
              WHERE reservation_id = :id AND scan_id LIKE '{_LEFT}%' ORDER BY seq DESC LIMIT 1"""  # noqa: S608
    return str(reader.value(sql, {"id": reservation_id}) or "")


def _staff_id(actor: str) -> str | None:
    kind, _, id_ = actor.partition(":")
    return id_ if kind == "staff" else None
