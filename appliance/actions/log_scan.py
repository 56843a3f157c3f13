"""Log a scan: its row in the door log, and the notice that the other doors wait for."""

from dataclasses import dataclass
from typing import Any

from appliance.model.notices import DoorChanged
from appliance.model.reservation import Reservation
from appliance.model.terminal import Terminal
from appliance.model.verdict import Verdict
from appliance.store.connection import Transaction
from appliance.store.reservations import find_reservation
from appliance.store.scans import add_scan


@dataclass(frozen=True, slots=True)
class Decided:
    """A verdict, and the reservations it speaks of as they are now: names, codes, notes."""

    verdict: Verdict
    reservations: tuple[Reservation, ...]


def log_scan(
    tx: Transaction, terminal: Terminal, scan_id: str, kind: str, verdict: Verdict, **details: Any
) -> int:
    """Append to the door log; its number there. `details` are further columns of `scan`."""
    values = {
        "scan_id": scan_id, "terminal_id": terminal.id, "kind": kind,
        "reservation_id": verdict.reservation.id if verdict.reservation else None,
        "result": verdict.result, "admitted": verdict.admitted, "verdict": verdict.to_json(),
    }  # fmt: skip
    seq = add_scan(tx, values | details)
    if verdict.admitted:
        tx.notices.append(DoorChanged(tx.now, terminal.id, scan_id, verdict))
    return seq


def recall(tx: Transaction, kept: str) -> Decided:
    """The answer that was given before, with what may be known of the guests today."""
    verdict = Verdict.from_json(kept)
    spoken_of = [seen.id for seen in verdict.candidates]
    if verdict.reservation is not None:
        spoken_of.append(verdict.reservation.id)
    found = (find_reservation(tx, reservation_id) for reservation_id in spoken_of)
    return Decided(verdict, tuple(reservation for reservation in found if reservation))
