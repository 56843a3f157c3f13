"""The door protocol: authentication, requests and answers (docs/guide/door-protocol.md)."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from aiohttp import web

from appliance.clock import MINUTE_MS, format_instant, optional_instant
from appliance.core.errors import (
    ApiError,
    BrowserRevoked,
    RoleMissing,
    TerminalNotPaired,
    TerminalRevoked,
    Unavailable,
    ValidationError,
    field_invalid,
)
from appliance.core.tokens import hash_token
from appliance.door.check_in import Decided
from appliance.door.live_feed import Change
from appliance.door.offline_sync import Admitted, Conflict
from appliance.door.scan import (
    LANGUAGES,
    OVERRIDABLE,
    TAKEN_BACK,
    FirstCheckIn,
    Reading,
    Scan,
    Seen,
    Verdict,
    phrase,
)
from appliance.door.terminals import NAME_MAX, Terminal, find_by_token, touch_terminal
from appliance.environment import Environment
from appliance.http.request import (
    ENVIRONMENT,
    RECHECK_AUTHORISATION,
    is_from_our_page,
    parse_instant,
)
from appliance.reservations.model import Reservation
from appliance.reservations.request import parse_uuid

CODE_MAX = 2048
REASON_MAX = 200
ARRIVALS_MAX = 999
SCANS_MAX = 500
_SCAN_ID = re.compile(r"[A-Za-z0-9._~-]{1,64}")
_RESULT = re.compile(r"[a-z_]{1,40}")
_PAIRING_CODE = re.compile(r"[0-9]{8}")
_PAIRING_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")  # a secret has 256 bits
_VERSION_MAX = 200
_SAFE_METHODS = frozenset({"GET", "HEAD"})
_A_YEAR = 365 * 24 * 3600
_TOKEN_LENGTH = len("term_") + 64


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """A scan or manual check-in. `device_at` is the terminal's time in ms since 1970.

    An offline scan also has a `code` or `reservation_id`. `shown` is the result that the terminal
    displayed while offline, if any.
    """

    scan_id: str
    arrivals: int | None = None
    reason: str | None = None
    simulate: bool = False
    device_at: int | None = None
    code: str = ""
    reservation_id: str | None = None
    shown: str | None = None

    def to_scan(self, reading: Reading, happened_at: int | None = None) -> Scan:
        """Convert to a Scan. `happened_at` is the box's time in ms since 1970, or None for now."""
        return Scan(
            id=self.scan_id, reading=reading, arrivals=self.arrivals, reason=self.reason,
            simulate=self.simulate, device_at=self.device_at, shown=self.shown,
            happened_at=happened_at,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """A pairing request. With `cookie`, the browser stores the token in a cookie.

    `code` contains the typed digits if `is_typed`, else the secret from a link.
    """

    code: str
    name: str | None
    language: str
    cookie: bool
    is_typed: bool


def parse_request(body: dict[str, Any], terminal: Terminal) -> ScanRequest:
    """Parse scanId, arrivals, override, simulate and at.

    Raises ValidationError if a member is invalid, and RoleMissing if the terminal may not override.
    """
    request = _parse_members(body)
    if request.reason is not None and not terminal.may("override"):
        raise RoleMissing(role="override")
    return request


def parse_offline_scans(value: object, terminal: Terminal) -> list[ScanRequest]:
    """Parse up to 500 offline scans, each of which must have `at`.

    Raises ValidationError with a path such as `scans[3].at` if a member is invalid. Raises
    RoleMissing if a scan without `shown` contains an override and the terminal may not override.
    For scans with `shown`, `sync_scans` checks the role.
    """
    if not isinstance(value, list) or len(value) > SCANS_MAX:
        raise field_invalid("scans", "list_at_most", longest=SCANS_MAX)
    return [_parse_offline_scan(item, terminal, f"scans[{n}]") for n, item in enumerate(value)]


def parse_scan_id(value: object) -> str:
    """Parse a scan id: 1 to 64 letters, digits or `._~-`. Raises ValidationError otherwise."""
    if not isinstance(value, str) or not _SCAN_ID.fullmatch(value):
        raise field_invalid("scanId", "scan_id")
    return value


def parse_code(value: object) -> str:
    """Parse a scanned or typed code.

    Raises ValidationError if it is blank or longer than 2048 characters.
    """
    if not isinstance(value, str) or not value.strip() or len(value) > CODE_MAX:
        raise field_invalid("code", "text_of", longest=CODE_MAX)
    return value


def parse_reservation_id(value: object) -> str:
    """Parse a reservation id. Raises ValidationError if it is not a UUID."""
    reservation_id = parse_uuid(value)
    if reservation_id is None:
        raise field_invalid("reservationId", "uuid")
    return reservation_id


def parse_reason(value: object, field: str) -> str | None:
    """Parse an optional reason. Return None if it is absent or blank.

    Raises ValidationError if it is longer than 200 characters.
    """
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > REASON_MAX:
        raise field_invalid(field, "text_at_most", longest=REASON_MAX)
    return value.strip() or None


def parse_needed_reason(value: object, field: str) -> str:
    """Parse a required reason. Raises ValidationError if it is absent, blank or too long."""
    reason = parse_reason(value, field)
    if reason is None:
        raise field_invalid(field, "reason")
    return reason


def parse_pairing(body: dict[str, Any]) -> PairingRequest:
    """Parse code, name, language and cookie. Raises ValidationError if one is invalid."""
    given = body.get("code")
    code = given.strip() if isinstance(given, str) else ""
    is_typed = _PAIRING_SECRET.fullmatch(code) is None
    if is_typed:
        code = re.sub(r"[\s-]", "", code)
        if not _PAIRING_CODE.fullmatch(code):
            raise field_invalid("code", "pairing_code")
    name = body.get("name")
    if name is not None and (not isinstance(name, str) or len(name.strip()) > NAME_MAX):
        raise field_invalid("name", "text_at_most", longest=NAME_MAX)
    language = body.get("language", "fr")
    if language not in LANGUAGES:
        raise field_invalid("language", "among", allowed=", ".join(LANGUAGES))
    cookie = _parse_flag(body, "cookie")
    return PairingRequest(code, (name or "").strip() or None, language, cookie, is_typed)


def _parse_members(body: dict[str, Any]) -> ScanRequest:
    return ScanRequest(
        scan_id=parse_scan_id(body.get("scanId")),
        arrivals=parse_people(body.get("arrivals"), "arrivals"),
        reason=_parse_override(body.get("override")),
        simulate=_parse_flag(body, "simulate"),
        device_at=parse_instant(body.get("at")),
    )


def _parse_flag(body: dict[str, Any], field: str) -> bool:
    value = body.get(field, False)
    if not isinstance(value, bool):
        raise field_invalid(field, "true_or_false")
    return value


def _parse_offline_scan(item: object, terminal: Terminal, path: str) -> ScanRequest:
    if not isinstance(item, dict):
        raise field_invalid(path, "object")
    try:
        shown = _parse_shown(item.get("shown"))
        request = parse_request(item, terminal) if shown is None else _parse_members(item)
        by_id = item.get("reservationId") is not None
        reservation_id = parse_reservation_id(item["reservationId"]) if by_id else None
        code = "" if by_id else parse_code(item.get("code"))
        reason = request.reason
        if shown == TAKEN_BACK:
            reason = parse_reason(item.get("reason"), "reason")
        if request.device_at is None:
            raise field_invalid("at", "timestamp")
    except ValidationError as fault:
        raise fault.inside(path) from None
    return replace(
        request, simulate=False, reason=reason, shown=shown, code=code,
        reservation_id=reservation_id,
    )  # fmt: skip


def _parse_shown(value: object) -> str | None:
    """Parse the result that the terminal showed, which may be one that only occurs offline."""
    if value is not None and (not isinstance(value, str) or not _RESULT.fullmatch(value)):
        raise field_invalid("shown", "result")
    return value


def _parse_override(value: object) -> str | None:
    if value is None:
        return None
    given = value.get("reason") if isinstance(value, dict) else None
    return parse_needed_reason(given, "override.reason")


def parse_people(value: object, field: str) -> int | None:
    """Parse a number of people. Return None if it is absent.

    Raises ValidationError if it is not a whole number from 1 to 999.
    """
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= ARRIVALS_MAX:
        raise field_invalid(field, "whole_number", largest=ARRIVALS_MAX)
    return value


async def authenticate(request: web.Request, role: str = "scan") -> Terminal:
    """Return the terminal that sent `request`.

    Raises TerminalNotPaired if the token is missing or unknown, and RoleMissing if the terminal's
    role does not include `role`. If the terminal is revoked, raises TerminalRevoked, or
    BrowserRevoked if the token came in a cookie. The browser must then delete its data.
    """
    environment = request[ENVIRONMENT]
    terminal = _identify(request, role)
    request[RECHECK_AUTHORISATION] = lambda later: _identify(later, role)
    await touch(environment, terminal, request.headers.get("User-Agent"))
    return terminal


def _identify(request: web.Request, role: str) -> Terminal:
    environment = request[ENVIRONMENT]
    token = _read_token(request, environment)
    terminal = environment.database.peek(find_by_token, hash_token(token)) if token else None
    if terminal is None:
        raise TerminalNotPaired
    if terminal.revoked_at is not None:
        raise TerminalRevoked if "Authorization" in request.headers else BrowserRevoked
    if not terminal.may(role):
        raise RoleMissing(role=role)
    return terminal


def keep_token(response: web.Response, environment: Environment, token: str) -> None:
    """Store the token in a cookie that scripts cannot read. An empty token deletes the cookie."""
    name, max_age = cookie_name(environment), _A_YEAR if token else 0
    response.set_cookie(name, token, max_age=max_age, secure=True, httponly=True, samesite="Strict")


def cookie_name(environment: Environment) -> str:
    """Return the name of the environment's cookie.

    Each environment has its own cookie name, because both use the same host and a browser sends a
    `__Host-` cookie to all paths of a host.
    """
    return f"__Host-venuebox-terminal{'' if environment.name == 'live' else '-test'}"


def _read_token(request: web.Request, environment: Environment) -> str | None:
    """Return the token from the Authorization header, or else from the cookie.

    To prevent CSRF, ignore the cookie if a page of another site sent the request. GET and HEAD are
    exempt, because they change nothing.
    """
    header = request.headers.get("Authorization")
    if header is not None:
        scheme, _, token = header.partition(" ")
        token = token.strip()
        is_token = scheme.lower() == "bearer" and len(token) == _TOKEN_LENGTH
        return token if is_token and token.startswith("term_") else None
    token = request.cookies.get(cookie_name(environment), "")
    if request.method in _SAFE_METHODS or is_from_our_page(request, environment.links.base):
        return token or None
    return None


async def touch(environment: Environment, terminal: Terminal, agent: str | None = None) -> None:
    """Record the terminal's activity, at most once a minute. Does nothing if the disk is full."""
    seen = terminal.last_seen_at
    if seen is None or not 0 <= environment.database.clock.now() - seen < MINUTE_MS:
        with suppress(Unavailable):
            version = agent and "".join(c for c in agent if c.isprintable())[:_VERSION_MAX]
            await environment.database.write(touch_terminal, terminal.id, version)


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
        "customerFirstName": reservation.customer_given_name,
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
        "customerFirstName": now.customer_given_name if now else None,
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
