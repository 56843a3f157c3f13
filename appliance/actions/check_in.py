"""Check in: decide a scan, admit whom it lets in, log it and announce it, all at once."""

from appliance.actions.count_wrong_code import check_wrong_codes, count_wrong_code
from appliance.actions.decide_scan import decide
from appliance.actions.keep_scan import keep_scan
from appliance.actions.log_scan import Decided, recall
from appliance.model.scan import Scan
from appliance.model.terminal import Terminal
from appliance.store.connection import Transaction
from appliance.store.scans import find_verdict


def check_in(tx: Transaction, terminal: Terminal, scan: Scan, early_minutes: int) -> Decided:
    """The verdict on `scan`; what it changes is changed, logged and announced with it.

    The same scan id from the same terminal gets the answer it got before. A simulated scan
    is decided and leaves no trace. TooManyWrongCodes when its terminal typed ten within a
    minute (docs/security.md, S10). Check-in never changes the status (interface, section 3).
    """
    kept = None if scan.simulate else find_verdict(tx, terminal.id, scan.id)
    if kept is not None:
        return recall(tx, kept)
    if scan.reading.kind == "code":
        check_wrong_codes(tx, terminal)
    decided = decide(tx, terminal, scan, early_minutes)
    if scan.reading.kind == "code" and decided.verdict.result == "unknown_code":
        count_wrong_code(tx, terminal)
    if not scan.simulate:
        keep_scan(tx, terminal, scan, decided.verdict)
    return decided
