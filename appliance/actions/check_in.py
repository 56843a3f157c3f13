"""Check in: decide a scan, admit whom it lets in, log it and announce it, all at once."""

import json
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from appliance.actions.announce_arrival import announce_arrival
from appliance.actions.count_wrong_code import check_wrong_codes, count_wrong_code
from appliance.actions.log_scan import Decided, log_scan, recall
from appliance.model.evening import instant, minutes, tonight
from appliance.model.reservation import Reservation
from appliance.model.scan import Reading, Scan
from appliance.model.terminal import Terminal
from appliance.model.venue import Venue
from appliance.model.verdict import COLOURS, OVERRIDABLE, FirstCheckIn, Verdict, judge, see
from appliance.store.connection import Transaction
from appliance.store.reservations import (
    add_history,
    find_by_pass,
    find_reservation,
    update_reservation,
)
from appliance.store.scans import find_first_admission, find_verdict
from appliance.store.venue import get_venue

_MINUTE = 60_000


def check_in(tx: Transaction, terminal: Terminal, scan: Scan, early_minutes: int) -> Decided:
    """The verdict on `scan`; what it changes is changed, logged and announced with it.

    The same scan id from the same terminal gets the answer it got before. A simulated scan
    is decided and leaves no trace. TooManyWrongCodes when its terminal typed ten within a
    minute (S10). Check-in never changes the reservation's status (contract section 3).
    """
    kept = None if scan.simulate else find_verdict(tx, terminal.id, scan.id)
    if kept is not None:
        return recall(tx, kept)
    if scan.reading.kind == "code":
        check_wrong_codes(tx, terminal)
    decided = _decide(tx, terminal, scan, early_minutes)
    if scan.reading.kind == "code" and decided.verdict.result == "unknown_code":
        count_wrong_code(tx, terminal)
    if not scan.simulate:
        _keep(tx, terminal, scan, decided.verdict)
    return decided


def _decide(tx: Transaction, terminal: Terminal, scan: Scan, early_minutes: int) -> Decided:
    if scan.reading.refused is not None:
        return Decided(Verdict(scan.reading.refused), ())
    found = _find(tx, scan.reading)
    if not found:
        return Decided(Verdict("unknown_code"), ())
    if len(found) > 1 or scan.reading.kind == "name":
        return Decided(Verdict("ambiguous", candidates=tuple(map(see, found))), found)
    venue = get_venue(tx)
    zone = tx.zones.zone(venue.time_zone)
    reservation, guest_pass = found[0], scan.reading.guest_pass
    result = judge(
        reservation,
        generation=guest_pass.generation if guest_pass else None,
        arrivals=scan.arrivals,
        tonight=tonight(tx.now, zone, venue.evening_ends_at),
        too_early=tx.now < _opens_at(reservation, venue, zone, early_minutes),
    )
    admitted = _count_admitted(reservation, scan, result)
    passed = "checked_in" if reservation.checked_in_at is None else "party_added"
    verdict = Verdict(
        passed if admitted else result,
        see(reservation, arrived=reservation.arrived + admitted),
        admitted,
        _first_check_in(tx, terminal, scan, reservation, zone, admitted),
        overrode=result if admitted and result != passed else None,
    )
    return Decided(verdict, found)


def _find(tx: Transaction, reading: Reading) -> tuple[Reservation, ...]:
    if reading.guest_pass is not None:
        found = [find_by_pass(tx, reading.guest_pass.pass_id)]
    else:
        found = [find_reservation(tx, id_) for id_ in reading.reservation_ids]
    return tuple(reservation for reservation in found if reservation is not None)


def _opens_at(reservation: Reservation, venue: Venue, zone: ZoneInfo, early_minutes: int) -> int:
    """When the door opens for this slot, in ms; 0 for the whole evening.

    A slot before the evening's end is one after midnight.
    """
    if reservation.slot is None:
        return 0
    day = date.fromisoformat(reservation.date)
    if minutes(reservation.slot) < minutes(venue.evening_ends_at):
        day += timedelta(days=1)
    return instant(day, reservation.slot, zone) - early_minutes * _MINUTE


def _count_admitted(reservation: Reservation, scan: Scan, result: str) -> int:
    missing = reservation.guests - reservation.arrived
    if COLOURS[result] == "green":
        return scan.arrivals or missing
    if scan.reason is not None and result in OVERRIDABLE:
        return scan.arrivals or max(missing, 1)
    return 0


def _first_check_in(
    tx: Transaction,
    terminal: Terminal,
    scan: Scan,
    reservation: Reservation,
    zone: ZoneInfo,
    admitted: int,
) -> FirstCheckIn | None:
    if reservation.checked_in_at is not None:
        _, name, by = find_first_admission(tx, reservation.id) or (None, None, None)
        return FirstCheckIn(
            reservation.checked_in_at, _clock(reservation.checked_in_at, zone), name, by
        )
    if not admitted:
        return None
    by = scan.staff.name if scan.staff else None
    return FirstCheckIn(tx.now, _clock(tx.now, zone), terminal.name, by)


def _clock(at: int, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC).astimezone(zone):%H:%M}"


def _keep(tx: Transaction, terminal: Terminal, scan: Scan, verdict: Verdict) -> None:
    """Write down what was decided: reservation, history, event, door log."""
    seen = verdict.reservation
    if seen is not None and verdict.admitted:
        first = verdict.result == "checked_in"
        changes = {"checked_in_at": tx.now} if first else {}
        update_reservation(tx, seen.id, arrived=seen.arrived, **changes)
        actor = f"staff:{scan.staff.id}" if scan.staff else f"terminal:{terminal.id}"
        add_history(tx, seen.id, verdict.result, actor, json.dumps({"people": verdict.admitted}))
        if first:
            announce_arrival(tx, seen.id)
    log_scan(
        tx,
        terminal,
        scan.id,
        scan.reading.kind,
        verdict,
        device_at=scan.device_at,
        read_hash=scan.reading.read_hash,
        reason=scan.reason if verdict.overrode else None,
        staff_id=scan.staff.id if scan.staff else None,
    )
