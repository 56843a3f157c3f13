"""Decide a scan: whom the door lets in, as things are now or as they were when it happened."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from appliance.actions.log_scan import Decided
from appliance.model.evening import instant, minutes, tonight
from appliance.model.reservation import Reservation
from appliance.model.scan import TAKEN_BACK, Reading, Scan
from appliance.model.terminal import Terminal
from appliance.model.venue import Venue
from appliance.model.verdict import COLOURS, OVERRIDABLE, FirstCheckIn, Verdict, judge, see
from appliance.store.connection import Transaction
from appliance.store.reservations import find_by_pass, find_reservation
from appliance.store.scans import find_first_admission
from appliance.store.venue import get_venue

_MINUTE = 60_000


def decide(tx: Transaction, terminal: Terminal, scan: Scan, early_minutes: int) -> Decided:
    """The verdict on `scan`, in the order of docs/decisions/door.md. Changes nothing.

    Whom a terminal let in while it was out of reach is in, whatever the box would have said:
    the verdict tells in `overrode` what that is.
    """
    at = tx.now if scan.happened_at is None else scan.happened_at
    if scan.reading.refused is not None:
        return Decided(Verdict(scan.reading.refused), ())
    found = _find(tx, scan.reading)
    if not found:
        return Decided(Verdict("unknown_code"), ())
    if len(found) > 1 or (scan.reading.kind == "name" and not scan.was_let_in):
        return Decided(Verdict("ambiguous", candidates=tuple(map(see, found))), found)
    venue = get_venue(tx)
    zone = tx.zones.zone(venue.time_zone)
    reservation, guest_pass = found[0], scan.reading.guest_pass
    result = judge(
        reservation,
        generation=guest_pass.generation if guest_pass else None,
        arrivals=scan.arrivals,
        tonight=tonight(at, zone, venue.evening_ends_at),
        too_early=at < _opens_at(reservation, venue, zone, early_minutes),
    )
    admitted = _count_admitted(reservation, scan, result)
    passed = "checked_in" if reservation.checked_in_at is None else "party_added"
    verdict = Verdict(
        passed if admitted else _without_entry(scan, result),
        see(reservation, arrived=reservation.arrived + admitted),
        admitted,
        _first_check_in(tx, terminal, scan, reservation, zone, at if admitted else None),
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
    if scan.shown is not None:  # it has happened already
        again = 1 if scan.overfills(result) else reservation.guests
        party = missing if missing > 0 else again
        return (scan.arrivals or party) if scan.was_let_in else 0
    if COLOURS[result] == "green":
        return scan.arrivals or missing
    if scan.reason is not None and result in OVERRIDABLE:
        return scan.arrivals or max(missing, 1)
    return 0


def _first_check_in(
    tx: Transaction, terminal: Terminal, scan: Scan, reservation: Reservation, zone: ZoneInfo,
    admitted_at: int | None,
) -> FirstCheckIn | None:  # fmt: skip
    if reservation.checked_in_at is not None:
        # `checked_in_at` may be that of an admission that was taken back while others stand.
        standing = find_first_admission(tx, reservation.id)
        first_at, name, by = standing or (reservation.checked_in_at, None, None)
        return FirstCheckIn(first_at, _clock(first_at, zone), name, by)
    if admitted_at is None:
        return None
    by = scan.staff.name if scan.staff else None
    return FirstCheckIn(admitted_at, _clock(admitted_at, zone), terminal.name, by)


def _clock(at: int, zone: ZoneInfo) -> str:
    local = datetime.fromtimestamp(at / 1000, zone)
    return f"{local.hour:02d}:{local.minute:02d}"


def _without_entry(scan: Scan, result: str) -> str:
    """What to call a guest who would be welcome and was not let in: as the terminal did."""
    if scan.was_taken_back:
        return TAKEN_BACK
    if COLOURS[result] != "green":
        return result
    if scan.shown is None:
        return result
    return scan.shown if scan.shown in COLOURS else "error"
