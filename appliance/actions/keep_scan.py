"""Keep a scan: everything that a verdict changes, in the transaction that reached it."""

import json

from appliance.actions.announce import announce
from appliance.actions.log_scan import log_scan
from appliance.model.scan import Scan
from appliance.model.terminal import Terminal
from appliance.model.verdict import Verdict
from appliance.store.connection import Transaction
from appliance.store.reservations import add_history, update_reservation


def keep_scan(tx: Transaction, terminal: Terminal, scan: Scan, verdict: Verdict) -> int:
    """Write down what was decided: reservation, history, event, door log; its number there."""
    seen = verdict.reservation
    if seen is not None and verdict.admitted:
        first = verdict.result == "checked_in"
        at = tx.now if scan.happened_at is None else scan.happened_at
        changes = {"checked_in_at": at} if first else {}
        update_reservation(tx, seen.id, arrived=seen.arrived, **changes)
        actor = f"staff:{scan.staff.id}" if scan.staff else f"terminal:{terminal.id}"
        add_history(tx, seen.id, verdict.result, actor, json.dumps({"people": verdict.admitted}))
        if first:
            announce(tx, "reservation.checked_in", seen.id)
    return log_scan(
        tx, terminal, scan.id, scan.reading.kind, verdict,
        reason=scan.reason if verdict.overrode or scan.was_taken_back else None,
        staff_id=scan.staff.id if scan.staff else None,
        device_at=scan.device_at, happened_at=scan.happened_at, read_hash=scan.reading.read_hash,
    )  # fmt: skip
