"""The door protocol's JSON, which contains no contact details (docs/guide/door-protocol.md)."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from appliance.clock import format_instant, optional_instant
from appliance.core.errors import ApiError
from appliance.door.live_feed import Change
from appliance.door.offline_sync import Admitted, Conflict
from appliance.door.scan_log import Decided
from appliance.door.terminals import Terminal
from appliance.door.verdict import OVERRIDABLE, FirstCheckIn, Seen, Verdict, phrase
from appliance.reservations.model import Reservation

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_Json = dict[str, Any]
_NOWHERE: _Json = {"terminalId": None, "terminal": None}
# Actions other than `override` that a terminal may offer after a result.
_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "checked_in": ("undo",),
    "party_added": ("undo",),
    "ambiguous": ("pick",),
    "bad_signature": ("scan_again", "search"),
    "unknown_code": ("scan_again", "search"),
    "error": ("scan_again",),
}


def verdict_of(
    decided: Decided, scan_id: str, terminal: Terminal, *, simulated: bool = False
) -> _Json:
    """Return a verdict in the terminal's language, with the actions that the terminal may offer."""
    verdict = decided.verdict
    current = {reservation.id: reservation for reservation in decided.reservations}
    sentences = phrase(verdict, terminal.language)
    overridable = verdict.result in OVERRIDABLE and terminal.may("override")
    data = {
        "scanId": scan_id,
        "result": verdict.result,
        "colour": verdict.colour,
        "say": {"staff": sentences.staff, "guest": sentences.guest},
        "overridable": overridable,
        "actions": _actions(verdict.result, terminal, overridable=overridable),
        "admitted": verdict.admitted,
        "reservation": _seen(verdict.reservation, current),
        "firstCheckIn": first_check_in_of(verdict.first_check_in),
    }
    if verdict.overrode is not None:
        data["overrode"] = verdict.overrode
    if verdict.candidates:
        data["candidates"] = [_seen(seen, current) for seen in verdict.candidates]
    if simulated:
        data["simulated"] = True
    return data


def error_of(error: ApiError, scan_id: str, terminal: Terminal) -> _Json:
    """Return a grey verdict that also has the members of `error` (interface, section 7)."""
    return error.body() | verdict_of(Decided(Verdict("error"), ()), scan_id, terminal)


def guest_of(reservation: Reservation) -> _Json:
    """Return a reservation as an entry in the evening list."""
    return {
        "id": reservation.id,
        "accessCode": reservation.access_code,
        "customerFirstName": reservation.customer_first_name,
        "table": {"id": reservation.table_id, "name": reservation.table_name,
                  "number": reservation.table_number},
        "date": reservation.date,
        "slot": reservation.slot,
        "guests": reservation.guests,
        "arrived": reservation.arrived,
        "notes": reservation.notes,
        "status": reservation.status,
        "checkedInAt": optional_instant(reservation.checked_in_at),
        "source": reservation.source,
        "vip": bool(reservation.vip),
        "lateAt": optional_instant(reservation.late_at),
    }  # fmt: skip


def first_check_in_of(first: FirstCheckIn | None) -> _Json | None:
    """Return the first check-in's time, terminal and staff member, or None."""
    if first is None:
        return None
    return {"at": format_instant(first.at), "terminal": first.terminal, "by": first.by}


def _actions(result: str, terminal: Terminal, *, overridable: bool) -> list[str]:
    actions = ("override",) * overridable + _ACTIONS.get(result, ())
    return [action for action in actions if action != "search" or terminal.may("search")]


def _seen(seen: Seen | None, current: Mapping[str, Reservation]) -> _Json | None:
    """Return the reservation as it was at the scan, but with its current name, code and notes."""
    if seen is None:
        return None
    now = current.get(seen.id)
    return {
        "id": seen.id,
        "accessCode": now.access_code if now else None,
        "customerFirstName": now.customer_first_name if now else None,
        "table": {"id": seen.table_id, "name": seen.table_name},
        "date": seen.date,
        "slot": seen.slot,
        "guests": seen.guests,
        "arrived": seen.arrived,
        "notes": now.notes if now else None,
        "vip": bool(now and now.vip),
        "status": seen.status,
    }


def event_of(change: Change, terminal: Terminal) -> _Json:
    """Return a feed event's data. Only terminals with the role `search` receive notes."""
    data: _Json = {}
    if change.totals is not None:
        data |= {"evening": change.evening, "totals": asdict(change.totals)}
    if change.reservation is not None:
        data["reservation"] = guest_of(change.reservation)
        if not terminal.may("search"):
            data["reservation"]["notes"] = None
    if change.door is not None:
        data["admitted"] = change.door.verdict.admitted
        data["terminalId"] = change.door.terminal_id
        if change.kind == "check-in":
            data["scanId"] = change.door.scan_id
        data["firstCheckIn"] = first_check_in_of(change.door.verdict.first_check_in)
    if change.conflict is not None:
        data["conflict"] = conflict_of(change.conflict, terminal)
    return data


def conflict_of(conflict: Conflict, terminal: Terminal) -> _Json:
    """Return a conflict as `terminal` sees it.

    `other` is the admission at the other terminal. `admissions` lists both admissions in
    chronological order. If there was only one admission, `other` has its time and no terminal.
    """
    other = conflict.other
    if other is not None and other.terminal_id == terminal.id != conflict.this.terminal_id:
        other = conflict.this
    return {
        "id": conflict.id,
        "kind": conflict.kind,
        "despite": conflict.despite,
        "roleMissing": "override" if conflict.lacked_role else None,
        "reservationId": conflict.reservation_id,
        "other": _admitted(other or conflict.this) | ({} if other else _NOWHERE),
        "admissions": [_admitted(each) for each in (conflict.other, conflict.this) if each],
        "arrived": conflict.arrived,
        "guests": conflict.guests,
        "acknowledged": conflict.acknowledged_at is not None,
    }


def _admitted(admission: Admitted) -> _Json:
    at = format_instant(admission.at)
    return {"terminalId": admission.terminal_id, "terminal": admission.terminal, "at": at}
