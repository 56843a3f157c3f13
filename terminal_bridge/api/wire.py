"""JSON of the door protocol's responses, without contact data (docs/guide/door-protocol.md)."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from aiohttp import web

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
# Actions that a terminal may offer after a result, besides `override`.
_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "checked_in": ("undo",),
    "party_added": ("undo",),
    "ambiguous": ("pick",),
    "bad_signature": ("scan_again", "search"),
    "unknown_code": ("scan_again", "search"),
    "error": ("scan_again",),
}


def answer(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Create a JSON response."""
    return web.Response(
        body=encode(data).encode(), status=status, headers=headers, content_type="application/json"
    )


def verdict_of(decided: Decided, scan_id: str, terminal: Terminal, *, simulated: bool) -> _Json:
    """Return a verdict in the terminal's language, with the actions that it may offer next."""
    verdict = decided.verdict
    known = {reservation.id: reservation for reservation in decided.reservations}
    sentences = phrase(verdict, terminal.language)
    overridable = verdict.result in OVERRIDABLE and terminal.may("override")
    shown = {
        "scanId": scan_id,
        "result": verdict.result,
        "colour": verdict.colour,
        "say": {"staff": sentences.staff, "guest": sentences.guest},
        "overridable": overridable,
        "actions": _actions(verdict.result, terminal, overridable=overridable),
        "admitted": verdict.admitted,
        "reservation": _seen(verdict.reservation, known),
        "firstCheckIn": first_check_in_of(verdict.first_check_in),
    }
    if verdict.overrode is not None:
        shown["overrode"] = verdict.overrode
    if verdict.candidates:
        shown["candidates"] = [_seen(seen, known) for seen in verdict.candidates]
    if simulated:
        shown["simulated"] = True
    return shown


def error_of(refusal: ApiError, scan_id: str, terminal: Terminal) -> _Json:
    """Return a server error: error body (interface, section 7) and grey verdict combined."""
    decided = Decided(Verdict("error"), ())
    return refusal.body() | verdict_of(decided, scan_id, terminal, simulated=False)


def guest_of(reservation: Reservation) -> _Json:
    """Return an entry of the evening list."""
    return {
        "id": reservation.id,
        "accessCode": reservation.access_code,
        "customerFirstName": reservation.customer_first_name,
        "table": {
            "id": reservation.table_id,
            "name": reservation.table_name,
            "number": reservation.table_number,
        },
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
    }


def first_check_in_of(first: FirstCheckIn | None) -> _Json | None:
    """Return time, terminal and staff member of the first check-in; None without one."""
    if first is None:
        return None
    return {"at": format_instant(first.at), "terminal": first.terminal, "by": first.by}


def _actions(result: str, terminal: Terminal, *, overridable: bool) -> list[str]:
    actions = ("override",) * overridable + _ACTIONS.get(result, ())
    return [action for action in actions if action != "search" or terminal.may("search")]


def _seen(seen: Seen | None, known: Mapping[str, Reservation]) -> _Json | None:
    """Return the reservation as of the scan, with its current name, code and notes."""
    if seen is None:
        return None
    now = known.get(seen.id)
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
    """Return the data of a feed event. Notes are included only with the role `search`."""
    told: _Json = {}
    if change.totals is not None:
        told |= {"evening": change.evening, "totals": asdict(change.totals)}
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
    """Return a conflict from this terminal's view: `other` is the admission elsewhere.

    `admissions` lists both, the first one first. With only one, the terminal of `other` is null.
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


def _admitted(admitted: Admitted) -> _Json:
    return {
        "terminalId": admitted.terminal_id,
        "terminal": admitted.terminal,
        "at": format_instant(admitted.at),
    }
