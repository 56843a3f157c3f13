"""Check-in: judge scans, admit parties or let them out, log and announce the verdicts.

The log is the table `scan_log`.
"""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from appliance.clock import MINUTE_MS
from appliance.core.errors import TooManyWrongCodes
from appliance.database.connection import Reader, Transaction
from appliance.door.scan import TAKEN_BACK, Reading, Scan
from appliance.door.terminals import (
    Terminal,
    count_wrong_code,
    get_portal_terminal,
    has_too_many_wrong_codes,
)
from appliance.door.verdict import (
    COLOURS,
    OVERRIDABLE,
    FirstCheckIn,
    Verdict,
    awaited_back,
    fullness,
    judge,
    see,
)
from appliance.outbox import announce
from appliance.reservations.model import Reservation
from appliance.reservations.rows import (
    add_history,
    count_evening,
    find_by_pass,
    find_reservation,
    get_reservation,
    update_reservation,
)
from appliance.staff.model import StaffMember
from appliance.venue.model import find_tonight, get_venue, minute_of, tonight

OLDEST_MS = 48 * 3600 * 1000  # the maximum age of an offline scan when the box receives it


class Decided(Struct, frozen=True):
    """A verdict and the current rows of the reservations it mentions."""

    verdict: Verdict
    reservations: tuple[Reservation, ...]


class DoorChanged(Struct, frozen=True):
    """Change notice: a scan admitted `verdict.admitted` people, or moved `verdict.moved`.

    For an undo, the numbers are negated.
    """

    at: int
    terminal_id: str
    scan_id: str
    verdict: Verdict


def check_in(tx: Transaction, terminal: Terminal, scan: Scan) -> Decided:
    """Judge `scan`, then apply, log and announce the verdict.

    A repeated scan (same terminal and scan id) gets the same response as the first. A simulated
    scan changes nothing, except that wrong codes are counted. Check-in never changes the
    reservation's status (interface, section 3). Raises TooManyWrongCodes if the terminal sent ten
    wrong codes within the last minute.
    """
    earlier = None if scan.simulate else find_decided(tx, terminal.id, scan.id)
    if earlier is not None:
        return earlier
    decided = decide_and_count(tx, terminal, scan)
    if not scan.simulate:
        keep_scan(tx, terminal, scan, decided.verdict)
    return decided


def check_in_by_staff(
    tx: Transaction, person: StaffMember, reservation_id: str, scan_id: str,
    *, arrivals: int | None, reason: str | None,
) -> Decided:  # fmt: skip
    """Check a party in from the portal. The scan log names the staff member `person`.

    A `reason` overrides a refusal. Idempotent for each `scan_id`. Raises NotFound if the
    reservation is unknown.
    """
    get_reservation(tx, reservation_id)
    scan = Scan(
        scan_id, Reading("list", (reservation_id,)), arrivals=arrivals, reason=reason, staff=person
    )
    return check_in(tx, get_portal_terminal(tx), scan)


def decide(tx: Transaction, terminal: Terminal, scan: Scan) -> Decided:
    """Judge `scan` by the checks in docs/decisions/door.md. Does not change the database.

    A party that a terminal admitted offline counts as admitted. If the box would have refused the
    party, the verdict's `overrode` is the result that the box would have given.
    """
    at = tx.now if scan.happened_at is None else scan.happened_at
    if scan.reading.refused is not None:
        return Decided(Verdict(scan.reading.refused), ())
    if scan.reading.kind == "walk_in":
        return Decided(_with_occupancy(tx, _count_without_table(scan)), ())
    found = _find(tx, scan.reading)
    if not found:
        return Decided(Verdict("unknown_code"), ())
    if len(found) > 1 or (scan.reading.kind == "name" and not scan.was_let_in):
        return Decided(Verdict("ambiguous", candidates=tuple(map(see, found))), found)
    venue = get_venue(tx)
    zone = tx.zones.zone(venue.time_zone)
    reservation = found[0]
    if scan.leaving:
        first = _first_check_in(tx, terminal, scan, reservation, zone, None)
        return Decided(_judge_exit(scan, reservation, first, at), found)
    starts_at = minute_of(date.fromisoformat(reservation.date), reservation.starts, zone)
    result = judge(
        reservation,
        generation=scan.reading.generation,
        arrivals=scan.arrivals,
        tonight=tonight(at, zone, venue.evening_ends_at),
        too_early=at < starts_at - venue.early_minutes * MINUTE_MS,
    )
    entered = _count_entered(reservation, scan, result)
    # Those who are out come back first. The number inside is then right in whichever order doors
    # that were out of the box's reach report entries and exits.
    back = min(entered, reservation.people_out, reservation.arrived)
    admitted = entered - back
    passed = "checked_in" if reservation.checked_in_at is None else "party_added"
    verdict = Verdict(
        (passed if admitted else "came_back") if entered else _result_without_entry(scan, result),
        see(reservation, arrived=reservation.arrived + admitted, out=reservation.people_out - back),
        admitted,
        _first_check_in(tx, terminal, scan, reservation, zone, at if admitted else None),
        overrode=result if entered and COLOURS[result] != "green" else None,
        moved=back,
        went_out=_clock(reservation.went_out_at or at, zone) if back else None,
    )
    return Decided(_with_occupancy(tx, verdict), found)


def _count_without_table(scan: Scan) -> Verdict:
    if scan.was_taken_back:
        return Verdict(TAKEN_BACK)
    people = scan.arrivals or 1
    return Verdict("went_out", moved=-people) if scan.leaving else Verdict("walk_in", None, people)


def _judge_exit(
    scan: Scan, reservation: Reservation, first: FirstCheckIn | None, at: int
) -> Verdict:
    """Return the verdict on people of a party who go out.

    An offline exit is counted in full, because the door of the entry may not have synchronised yet.
    """
    people = scan.arrivals or reservation.inside
    result = "went_out" if 0 < people <= reservation.inside or scan.was_let_in else "not_inside"
    has_left = scan.was_let_in or (scan.shown is None and result == "went_out")
    if not has_left:
        people, result = 0, _result_without_entry(scan, result)
    out = reservation.people_out + people
    seen = see(reservation, out=out, out_at=at if people else None)
    return Verdict(result, seen, first_check_in=first, moved=-people)


def _with_occupancy(tx: Transaction, verdict: Verdict) -> Verdict:
    """Add how full the venue is to the verdict on an entry, if it is nearly full."""
    capacity, entered = get_venue(tx).capacity, verdict.admitted + verdict.moved
    if capacity is None or entered <= 0:
        return verdict
    inside = count_evening(tx, find_tonight(tx).isoformat()).inside.people + entered
    return replace(verdict, occupancy=(inside, capacity)) if fullness(inside, capacity) else verdict


def decide_and_count(tx: Transaction, terminal: Terminal, scan: Scan) -> Decided:
    """Judge `scan` as `decide()` does, and count an unknown access code as a wrong code.

    Raises TooManyWrongCodes if `scan` is an access code and the terminal sent ten wrong codes
    within the last minute (docs/security.md, S10).
    """
    is_code = scan.reading.kind == "code"
    if is_code and has_too_many_wrong_codes(tx, terminal):
        raise TooManyWrongCodes
    decided = decide(tx, terminal, scan)
    if is_code and decided.verdict.result == "unknown_code":
        count_wrong_code(tx, terminal)
    return decided


def _find(tx: Transaction, reading: Reading) -> tuple[Reservation, ...]:
    if reading.guest_pass is not None:
        found = [find_by_pass(tx, reading.guest_pass.pass_id)]
    else:
        found = [find_reservation(tx, id_) for id_ in reading.reservation_ids]
    return tuple(reservation for reservation in found if reservation is not None)


def _count_entered(reservation: Reservation, scan: Scan, result: str) -> int:
    missing = reservation.guests - reservation.arrived
    if scan.shown is not None:  # the terminal decided offline
        if not scan.was_let_in:
            return 0
        second_party = 1 if scan.overfills(result) else reservation.guests
        return scan.arrivals or (missing if missing > 0 else second_party)
    if COLOURS[result] == "green":
        return scan.arrivals or awaited_back(reservation) or missing
    if scan.reason is not None and result in OVERRIDABLE:
        return scan.arrivals or max(missing, 1)
    return 0


def _first_check_in(
    tx: Transaction, terminal: Terminal, scan: Scan, reservation: Reservation, zone: ZoneInfo,
    admitted_at: int | None,
) -> FirstCheckIn | None:  # fmt: skip
    if reservation.checked_in_at is not None:
        # The admission at `checked_in_at` may have been undone, so use the first admission that
        # has not been undone.
        first = find_first_admission(tx, reservation.id)
        at, name, by = first[1:] if first else (reservation.checked_in_at, None, None)
    elif admitted_at is not None:
        at, name, by = admitted_at, terminal.name, scan.staff.name if scan.staff else None
    else:
        return None
    return FirstCheckIn(at, _clock(at, zone), name, by)


def _clock(at: int, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(at / 1000, zone):%H:%M}"


def _result_without_entry(scan: Scan, result: str) -> str:
    """Return the result for a party that was not admitted.

    If the terminal refused the party offline and the box would have admitted it, this is the
    result that the terminal showed.
    """
    if scan.was_taken_back:
        return TAKEN_BACK
    if COLOURS[result] != "green" or scan.shown is None:
        return result
    return scan.shown if scan.shown in COLOURS else "error"


def keep_scan(tx: Transaction, terminal: Terminal, scan: Scan, verdict: Verdict) -> int:
    """Store a verdict and return its row number in the scan log.

    If people came in or went out, also updates the reservation and its history. Announces the
    party's first check-in to the webhook endpoints.
    """
    seen = verdict.reservation
    if seen is not None and (verdict.admitted or verdict.moved):
        first = verdict.result == "checked_in"
        at = tx.now if scan.happened_at is None else scan.happened_at
        changes = {"checked_in_at": at} if first else {}
        counts = {"arrived": seen.arrived, "people_out": seen.out, "went_out_at": seen.out_at}
        update_reservation(tx, seen.id, **counts, **changes)
        actor = f"staff:{scan.staff.id}" if scan.staff else f"terminal:{terminal.id}"
        people = abs(verdict.admitted + verdict.moved)
        add_history(tx, seen.id, verdict.result, actor, people=people)
        if first:
            announce(tx, "reservation.checked_in", seen.id)
    return log_scan(
        tx, terminal, scan.id, scan.reading.kind, verdict,
        reason=scan.reason if verdict.overrode or scan.was_taken_back else None,
        staff_id=scan.staff.id if scan.staff else None,
        device_at=scan.device_at, happened_at=scan.happened_at, read_hash=scan.reading.read_hash,
    )  # fmt: skip


def log_scan(
    tx: Transaction, terminal: Terminal, scan_id: str, kind: str, verdict: Verdict, **details: Any
) -> int:
    """Append a verdict to the log and return its row number.

    `details` sets further columns of `scan_log`.
    """
    values = {
        "at": tx.now, "scan_id": scan_id, "terminal_id": terminal.id, "kind": kind,
        "reservation_id": verdict.reservation.id if verdict.reservation else None,
        "result": verdict.result, "admitted": verdict.admitted, "moved": verdict.moved,
        "verdict": verdict.to_json(),
    }  # fmt: skip
    seq = tx.insert("scan_log", values | details)
    if verdict.admitted or verdict.moved:
        tx.notices.append(DoorChanged(tx.now, terminal.id, scan_id, verdict))
    return seq


def find_decided(tx: Transaction, terminal_id: str, scan_id: str) -> Decided | None:
    """Return the stored decision for a terminal's scan, or None if the scan is new."""
    sql = "SELECT verdict FROM scan_log WHERE terminal_id = :terminal_id AND scan_id = :scan_id"
    stored = tx.value(sql, {"terminal_id": terminal_id, "scan_id": scan_id})
    return None if stored is None else recall(tx, stored)


def recall(tx: Transaction, stored: str) -> Decided:
    """Parse a stored verdict and read the current rows of the reservations it mentions."""
    verdict = Verdict.from_json(stored)
    seen = (*verdict.candidates, verdict.reservation)
    found = (find_reservation(tx, reservation.id) for reservation in seen if reservation)
    return Decided(verdict, tuple(reservation for reservation in found if reservation))


NOT_UNDONE = "s.admitted > 0 AND NOT EXISTS (SELECT 1 FROM scan_log u WHERE u.undoes = s.seq)"
_ADMISSION = "s.seq, s.terminal_id, s.at, s.reservation_id, s.result, s.admitted, s.moved"


@dataclass(frozen=True, slots=True)
class Admission:
    """A scan that a terminal or staff may want to undo.

    `at` is in ms since 1970. `undo` is the verdict of the undo, as JSON, or None if the scan
    has not been undone.
    """

    seq: int
    terminal_id: str
    at: int
    reservation_id: str | None
    result: str
    admitted: int
    moved: int
    undo: str | None

    @property
    def is_counted(self) -> bool:
        """Whether somebody came in or went out by this scan."""
        return self.result != TAKEN_BACK and bool(self.admitted or self.moved)


def find_admission(reader: Reader, terminal_id: str, scan_id: str) -> Admission | None:
    """Return the scan with that id, or None.

    If several terminals used the id, returns this terminal's scan or, if it has none, the latest.
    """
    sql = f"""SELECT {_ADMISSION}, u.verdict
              FROM terminal t
              JOIN scan_log s ON s.terminal_id = t.id AND s.scan_id = :scan_id
              LEFT JOIN scan_log u ON u.undoes = s.seq
              ORDER BY t.id = :terminal_id DESC, s.seq DESC LIMIT 1"""  # noqa: S608
    return reader.one(Admission, sql, {"terminal_id": terminal_id, "scan_id": scan_id})


def find_last_admission(reader: Reader, reservation_id: str) -> Admission | None:
    """Return the reservation's latest admission that has not been undone, or None."""
    sql = f"""SELECT {_ADMISSION}, NULL FROM scan_log s
              WHERE s.reservation_id = :id AND {NOT_UNDONE} ORDER BY s.seq DESC LIMIT 1"""  # noqa: S608
    return reader.one(Admission, sql, {"id": reservation_id})


def find_first_admission(
    reader: Reader, reservation_id: str
) -> tuple[int, int, str | None, str | None] | None:
    """Return the reservation's first admission that has not been undone, or None.

    The result is (row number, time in ms since 1970, terminal's name, staff member's name).
    """
    sql = f"""SELECT s.seq, coalesce(s.happened_at, s.at), t.name, staff.name
              FROM scan_log s
              JOIN terminal t ON t.id = s.terminal_id
              LEFT JOIN staff ON staff.id = s.staff_id
              WHERE s.reservation_id = :id AND {NOT_UNDONE} ORDER BY s.seq LIMIT 1"""  # noqa: S608
    return reader.row(sql, {"id": reservation_id})
