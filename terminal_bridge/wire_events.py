"""How conflicts, totals and live events look on the wire."""

from typing import Any

from appliance.clock import format_instant
from appliance.live.change import Change
from appliance.model.conflict import Admitted, Conflict
from appliance.model.terminal import Terminal
from appliance.model.totals import Count, Totals
from terminal_bridge.wire import first_check_in_of, guest_of

_Json = dict[str, Any]


def event_of(change: Change, terminal: Terminal) -> _Json:
    """The data of one event, as far as its terminal may know it: notes need the role `search`."""
    told: _Json = {}
    if change.totals is not None:
        told |= {"evening": change.evening, "totals": totals_of(change.totals)}
    if change.reservation is not None:
        told["reservation"] = guest_of(change.reservation)
        if not terminal.may("search"):
            told["reservation"]["notes"] = None
    if change.door is not None:
        told["admitted"] = change.door.verdict.admitted
        told["terminalId"] = change.door.terminal_id
        if change.kind == "check-in":
            told["scanId"] = change.door.scan_id
        told["firstCheckIn"] = first_check_in_of(change.door.verdict.first_check_in)
    if change.conflict is not None:
        told["conflict"] = conflict_of(change.conflict, terminal)
    return told


def conflict_of(conflict: Conflict, terminal: Terminal) -> _Json:
    """A conflict as this terminal sees it: `other` is where somebody else let the party in.

    `admissions` are both, the first one first; where there is but one, `other` names nobody.
    """
    others = [a for a in (conflict.other, conflict.this) if a and a.terminal_id != terminal.id]
    other = others[0] if others and conflict.other else conflict.other
    return {
        "id": conflict.id,
        "kind": conflict.kind,
        "despite": conflict.despite,
        "roleMissing": "override" if conflict.lacked_role else None,
        "reservationId": conflict.reservation_id,
        "other": _admitted(other)
        if other
        else {"terminalId": None, "terminal": None, "at": format_instant(conflict.this.at)},
        "admissions": [_admitted(a) for a in (conflict.other, conflict.this) if a],
        "arrived": conflict.arrived,
        "guests": conflict.guests,
        "acknowledged": conflict.acknowledged_at is not None,
    }


def totals_of(totals: Totals) -> _Json:
    """People and reservations, expected and arrived."""
    return {"expected": _count(totals.expected), "arrived": _count(totals.arrived)}


def _count(count: Count) -> _Json:
    return {"people": count.people, "reservations": count.reservations}


def _admitted(admitted: Admitted) -> _Json:
    return {
        "terminalId": admitted.terminal_id,
        "terminal": admitted.terminal,
        "at": format_instant(admitted.at),
    }
