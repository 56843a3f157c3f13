"""Take in the scans that a terminal decided while offline (docs/guide/door-protocol.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from appliance.actions.count_wrong_code import count_wrong_code, is_keyboard_closed
from appliance.actions.decide_scan import decide
from appliance.actions.keep_scan import keep_scan
from appliance.actions.log_scan import Decided, recall
from appliance.model.conflict import ADMITTED_ANYWAY, ADMITTED_TWICE, Conflict
from appliance.model.notices import ConflictChanged
from appliance.model.scan import Scan, unheard_id
from appliance.model.terminal import Terminal
from appliance.model.verdict import Verdict
from appliance.store.conflicts import add_conflict, find_conflict_of_scan, get_conflict
from appliance.store.connection import Transaction
from appliance.store.scans import find_first_admission_seq, find_verdict

# What the box would have refused whoever stood there, and whenever: a matter for people.
# Another evening is none where staff may let in anybody: its clock may be wrong, and they are in.
_NEVER = frozenset({"cancelled", "declined", "revoked", "not_confirmed", "payment_due"})


@dataclass(frozen=True, slots=True)
class Synced:
    """The answer to one scan that comes late."""

    decided: Decided
    conflict: Conflict | None


def sync_scans(
    tx: Transaction, terminal: Terminal, scans: Sequence[Scan], early_minutes: int
) -> list[Synced]:
    """The answers to `scans`, which are in the order in which they happened.

    Whom the terminal let in is counted: people are inside. More than were booked, or somebody
    whose table was freed meanwhile, makes a conflict, once; so does whoever the box cannot tell
    and so counts nowhere, and whoever the box would have refused, with a reason or without, at a
    terminal whose role, as it is now, lets in nobody against the box's word. The same scan id
    from the same terminal gets the answer it got before, over the wire or here.

    Wrong typed codes count as those of `check_in` do. After ten within a minute no code is
    looked up: it is logged as unknown, and is a conflict where it let somebody in.
    """
    return [_sync(tx, terminal, scan, early_minutes) for scan in scans]


def _sync(tx: Transaction, terminal: Terminal, scan: Scan, early_minutes: int) -> Synced:
    kept = find_verdict(tx, terminal.id, scan.id)
    if kept is not None:
        answered = recall(tx, kept)
        conflict = find_conflict_of_scan(tx, terminal.id, scan.id)
        if conflict is None and _let_in_unheard(answered.verdict, scan):
            return _sync(tx, terminal, replace(scan, id=unheard_id(scan.id)), early_minutes)
        return Synced(answered, conflict)
    decided = _decide(tx, terminal, scan, early_minutes)
    seq = keep_scan(tx, terminal, scan, decided.verdict)
    kind = _find_conflict(terminal, decided.verdict, scan)
    conflict = _open(tx, decided.verdict, seq, kind) if kind else None
    return Synced(decided, conflict)


def _decide(tx: Transaction, terminal: Terminal, scan: Scan, early_minutes: int) -> Decided:
    if scan.reading.kind != "code":
        return decide(tx, terminal, scan, early_minutes)
    if is_keyboard_closed(tx, terminal):
        return Decided(Verdict("unknown_code"), ())
    decided = decide(tx, terminal, scan, early_minutes)
    if decided.verdict.result == "unknown_code":
        count_wrong_code(tx, terminal)
    return decided


def _let_in_unheard(verdict: Verdict, scan: Scan) -> bool:
    """Whether the box's answer came too late: the terminal had let them in by its own list.

    They are inside, so they are counted as a scan of their own.
    """
    return scan.was_let_in and verdict.admitted <= 0 and verdict.colour != "green"


def _find_conflict(terminal: Terminal, verdict: Verdict, scan: Scan) -> str | None:
    if not scan.was_let_in:
        return None
    seen = verdict.reservation
    if seen is None:
        return ADMITTED_ANYWAY
    if seen.arrived > seen.guests and not scan.overfills(verdict.overrode or ""):
        return ADMITTED_TWICE
    if terminal.may("override"):
        against = scan.reason is None and verdict.overrode in _NEVER
    else:
        against = verdict.overrode is not None
    return ADMITTED_ANYWAY if against else None


def _open(tx: Transaction, verdict: Verdict, seq: int, kind: str) -> Conflict:
    seen = verdict.reservation
    despite = verdict.overrode or verdict.result
    if seen is None:
        conflict_id = add_conflict(tx, seq, None, kind, despite, None, (0, 0))
    else:
        other = find_first_admission_seq(tx, seen.id, before=seq)
        party = (seen.arrived, seen.guests)
        conflict_id = add_conflict(tx, seq, other, kind, despite, seen.id, party)
    tx.notices.append(ConflictChanged(conflict_id))
    return get_conflict(tx, conflict_id)
