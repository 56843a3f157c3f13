"""The door protocol: authentication, scans, and their verdicts (docs/guide/door-protocol.md)."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

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
from appliance.database.connection import Transaction
from appliance.door.check_in import (
    Decided,
    check_in,
)
from appliance.door.guest_pass import TEXT_LENGTH
from appliance.door.scan import TAKEN_BACK, UNREAD, WALK_IN, Reading, Scan, look_up_code
from appliance.door.terminals import Terminal, find_by_token, touch_terminal
from appliance.door.undo import undo_check_in, undo_latest
from appliance.door.verdict import OVERRIDABLE, FirstCheckIn, Seen, Verdict, phrase
from appliance.environment import Environment
from appliance.http.request import (
    ENVIRONMENT,
    RECHECK_AUTHORISATION,
    answer,
    cookie_name,
    is_from_our_page,
    parse_instant,
    read_cookie,
    read_object,
)
from appliance.reservations.model import Reservation
from appliance.reservations.request import parse_uuid

CODE_MAX = 2048
REASON_MAX = 200
ARRIVALS_MAX = 999
SCANS_MAX = 500
_SCAN_ID = re.compile(r"[A-Za-z0-9._~-]{1,64}")
_RESULT = re.compile(r"[a-z_]{1,40}")
_VERSION_MAX = 200
_A_YEAR = 365 * 24 * 3600
_SAFE_METHODS = frozenset({"GET", "HEAD"})
_TOKEN_LENGTH = len("term_") + 64
encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_Json = dict[str, Any]
# Actions other than `override` that a terminal may offer after a result.
_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "checked_in": ("undo",),
    "party_added": ("undo",),
    "came_back": ("undo",),
    "walk_in": ("undo",),
    "went_out": ("undo",),
    "ambiguous": ("pick",),
    "bad_signature": ("scan_again", "search"),
    "unknown_code": ("scan_again", "search"),
    "error": ("scan_again",),
}


async def authenticate(request: web.Request, role: str = "scan") -> Terminal:
    """Return the terminal that sent `request`.

    Raises TerminalNotPaired if the token is missing or unknown, and RoleMissing if the terminal's
    role does not include `role`. If the terminal is revoked, raises TerminalRevoked, or
    BrowserRevoked if the token came in a cookie. The browser must then delete its data.
    """
    environment = request[ENVIRONMENT]
    terminal = identify(request, environment, role)
    request[RECHECK_AUTHORISATION] = lambda later: identify(later, environment, role)
    await touch(environment, terminal, request.headers.get("User-Agent"))
    return terminal


def identify(request: web.Request, environment: Environment, role: str = "scan") -> Terminal:
    """Return the terminal of `environment` that sent `request`. Raises as `authenticate` does."""
    token = _read_token(request, environment)
    terminal = environment.database.look_up(find_by_token, hash_token(token)) if token else None
    if terminal is None:
        raise TerminalNotPaired
    if terminal.revoked_at is not None:
        if "Authorization" in request.headers:
            raise TerminalRevoked
        refusal = BrowserRevoked()
        # Clear-Site-Data would also delete the cookies of other boxes on this host.
        refusal.headers = {**refusal.headers, "Set-Cookie": _forget_token(request)}
        raise refusal
    if not terminal.may(role):
        raise RoleMissing(role=role)
    return terminal


def keep_token(request: web.Request, response: web.Response, token: str) -> None:
    """Store the token in a cookie that scripts cannot read. An empty token deletes the cookie.

    Each environment has its own cookie, because a browser sends a `__Host-` cookie to every path
    on its host.
    """
    name = cookie_name(request, _cookie_kind(request[ENVIRONMENT]))
    response.set_cookie(
        name, token, max_age=_A_YEAR if token else 0, secure=True, httponly=True, samesite="Strict"
    )


def _forget_token(request: web.Request) -> str:
    """Return the Set-Cookie header that deletes the token's cookie."""
    response = web.Response()
    keep_token(request, response, "")
    (cookie,) = response.cookies.values()
    return cookie.OutputString()


def _cookie_kind(environment: Environment) -> str:
    return "terminal-test" if environment.name == "test" else "terminal"


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
    token = read_cookie(request, _cookie_kind(environment))
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


async def scan(request: web.Request) -> web.Response:
    """`POST /scans`: return the verdict on a scanned or typed code."""
    terminal = await authenticate(request)
    body = await read_object(request)
    scanned, code = parse_request(body, terminal), parse_code(body.get("code"))
    deciding = decide_code(request[ENVIRONMENT], terminal, scanned, code)
    return await answer_decided(deciding, scanned.id, terminal)


async def check_in_by_hand(request: web.Request) -> web.Response:
    """`POST /check-ins`: check in a guest picked from the evening list."""
    terminal = await authenticate(request, "search")
    body = await read_object(request)
    scanned = parse_request(body, terminal)
    reading = Reading("list", (parse_reservation_id(body.get("reservationId")),))
    deciding = decide(request[ENVIRONMENT], terminal, replace(scanned, reading=reading))
    return await answer_decided(deciding, scanned.id, terminal)


async def answer_decided(
    deciding: Awaitable[_Json], scan_id: str, terminal: Terminal
) -> web.Response:
    """Respond with the verdict or, if the box is unavailable, with a grey verdict and the error."""
    try:
        return answer(await deciding)
    except Unavailable as error:
        return answer(error_of(error, scan_id, terminal), error.status, error.headers)


async def undo(request: web.Request) -> web.Response:
    """`POST /scans/{scanId}/undo`: undo a check-in or an exit."""
    terminal = await authenticate(request)
    scan_id = parse_scan_id(request.match_info["scanId"])
    body = await read_object(request, optional=True)
    reason = parse_reason(body.get("reason"), "reason")
    decided = await request[ENVIRONMENT].database.write(undo_check_in, terminal, scan_id, reason)
    return answer(verdict_of(decided, scan_id, terminal))


async def undo_by_hand(request: web.Request) -> web.Response:
    """`POST /check-ins/{id}/undo`: undo a party's latest check-in."""
    terminal = await authenticate(request, "search")
    reservation_id = parse_reservation_id(request.match_info["id"])
    body = await read_object(request)
    reason = parse_needed_reason(body.get("reason"), "reason")
    arrived = parse_people(body.get("arrived"), "arrived")
    decided = await request[ENVIRONMENT].database.write(
        undo_latest, terminal, reservation_id, arrived, reason
    )
    return answer(verdict_of(decided, reservation_id, terminal))


async def decide_code(
    environment: Environment, terminal: Terminal, scanned: Scan, code: str
) -> _Json:
    """Decide a code for `POST /scans` or an attached scanner. Return the verdict's JSON object.

    Raises the same errors as `check_in`, and Unavailable if the box cannot decide.
    """
    database, by_name = environment.database, terminal.may("search")
    read = environment.keyring, environment.name, code
    # A pass is found quickly through an index, so it is looked up in the event loop. Typed text may
    # need a slow search, which runs in a reader thread.
    if len(code) >= TEXT_LENGTH:
        reading = database.peek(look_up_code, *read, by_name=by_name)
    else:
        reading = await database.read(look_up_code, *read, by_name=by_name)
    return await decide(environment, terminal, replace(scanned, reading=reading))


async def decide(
    environment: Environment, terminal: Terminal, scanned: Scan,
    act: Callable[[Transaction, Terminal, Scan], Decided] = check_in,
) -> _Json:  # fmt: skip
    """Decide a scan by `act`. Return the verdict's JSON object."""
    decided = await environment.database.write(act, terminal, scanned)
    return verdict_of(decided, scanned.id, terminal, simulated=scanned.simulate)


class OfflineScan(NamedTuple):
    """A scan that a terminal decided while offline, by `code` or by `reservation_id`.

    It has neither if it counts walk-ins without a table.
    """

    scan: Scan
    code: str
    reservation_id: str | None


def parse_request(body: dict[str, Any], terminal: Terminal) -> Scan:
    """Parse scanId, arrivals, override, simulate, leaving and at.

    Raises ValidationError if a member is invalid, and RoleMissing if the terminal may not override.
    """
    request = _parse_members(body)
    if request.reason is not None and not terminal.may("override"):
        raise RoleMissing(role="override")
    return request


def parse_offline_scans(value: object, terminal: Terminal) -> list[OfflineScan]:
    """Parse up to 500 offline scans, each of which must have `at`.

    Raises ValidationError with a path such as `scans[3].at` if a member is invalid. Raises
    RoleMissing if a scan without `shown` contains an override and the terminal may not override.
    For scans with `shown`, `sync_scans` checks the role.
    """
    if not isinstance(value, list) or len(value) > SCANS_MAX:
        raise field_invalid("scans", "a list of at most {longest}.", longest=SCANS_MAX)
    return [_parse_offline_scan(item, terminal, f"scans[{n}]") for n, item in enumerate(value)]


def parse_scan_id(value: object) -> str:
    """Parse a scan id: 1 to 64 letters, digits or `._~-`. Raises ValidationError otherwise."""
    if not isinstance(value, str) or not _SCAN_ID.fullmatch(value):
        raise field_invalid("scanId", "1 to 64 letters, digits or ._~- expected.")
    return value


def parse_code(value: object) -> str:
    """Parse a scanned or typed code.

    Raises ValidationError if it is blank or longer than 2048 characters.
    """
    if not isinstance(value, str) or not value.strip() or len(value) > CODE_MAX:
        raise field_invalid("code", "text of 1 to {longest} characters.", longest=CODE_MAX)
    return value


def parse_reservation_id(value: object) -> str:
    """Parse a reservation id. Raises ValidationError if it is not a UUID."""
    reservation_id = parse_uuid(value)
    if reservation_id is None:
        raise field_invalid("reservationId", "a UUID expected.")
    return reservation_id


def parse_reason(value: object, field: str) -> str | None:
    """Parse an optional reason. Return None if it is absent or blank.

    Raises ValidationError if it is longer than 200 characters.
    """
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > REASON_MAX:
        raise field_invalid(field, "text of at most {longest} characters.", longest=REASON_MAX)
    return value.strip() or None


def parse_needed_reason(value: object, field: str) -> str:
    """Parse a required reason. Raises ValidationError if it is absent, blank or too long."""
    reason = parse_reason(value, field)
    if reason is None:
        raise field_invalid(field, "a reason is required.")
    return reason


def _parse_members(body: dict[str, Any]) -> Scan:
    return Scan(
        id=parse_scan_id(body.get("scanId")),
        reading=UNREAD,
        arrivals=parse_people(body.get("arrivals"), "arrivals"),
        reason=_parse_override(body.get("override")),
        simulate=parse_flag(body, "simulate"),
        device_at=parse_instant(body.get("at")),
        leaving=parse_flag(body, "leaving"),
    )


def parse_flag(body: dict[str, Any], field: str) -> bool:
    """Parse an optional boolean, false by default. Raises ValidationError for other values."""
    value = body.get(field, False)
    if not isinstance(value, bool):
        raise field_invalid(field, "true or false expected.")
    return value


def _parse_offline_scan(item: object, terminal: Terminal, path: str) -> OfflineScan:
    if not isinstance(item, dict):
        raise field_invalid(path, "an object expected.")
    try:
        shown = _parse_shown(item.get("shown"))
        scan = parse_request(item, terminal) if shown is None else _parse_members(item)
        is_walk_in = parse_flag(item, "walkIn")
        if is_walk_in and shown is None and not terminal.may("override"):
            raise RoleMissing(role="override")
        by_id = item.get("reservationId") is not None
        reservation_id = parse_reservation_id(item["reservationId"]) if by_id else None
        code = "" if by_id or is_walk_in else parse_code(item.get("code"))
        reason = scan.reason
        if shown == TAKEN_BACK:
            reason = parse_reason(item.get("reason"), "reason")
        if scan.device_at is None:
            raise field_invalid("at", "a timestamp is required.")
    except ValidationError as fault:
        raise fault.inside(path) from None
    scan = replace(scan, simulate=False, reason=reason, shown=shown)
    if is_walk_in:
        scan = replace(scan, reading=WALK_IN)
    return OfflineScan(scan, code, reservation_id)


def _parse_shown(value: object) -> str | None:
    """Parse the result that the terminal showed, which may be one that occurs only offline."""
    if value is not None and (not isinstance(value, str) or not _RESULT.fullmatch(value)):
        raise field_invalid("shown", "a result expected.")
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
        raise field_invalid(field, "a whole number from 1 to {largest}.", largest=ARRIVALS_MAX)
    return value


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
        "moved": verdict.moved,
        "reservation": _seen(verdict.reservation, current, terminal),
        "firstCheckIn": first_check_in_of(verdict.first_check_in),
    }
    if verdict.overrode is not None:
        data["overrode"] = verdict.overrode
    if verdict.occupancy is not None:
        inside, capacity = verdict.occupancy
        data["occupancy"] = {"inside": inside, "capacity": capacity}
    if verdict.candidates:
        data["candidates"] = [_seen(seen, current, terminal) for seen in verdict.candidates]
    if simulated:
        data["simulated"] = True
    return data


def error_of(error: ApiError, scan_id: str, terminal: Terminal) -> _Json:
    """Return a grey verdict that also has the members of `error` (interface, section 7)."""
    return error.body() | verdict_of(Decided(Verdict("error"), ()), scan_id, terminal)


def first_check_in_of(first: FirstCheckIn | None) -> _Json | None:
    """Return the first check-in's time, terminal and staff member, or None."""
    if first is None:
        return None
    return {"at": format_instant(first.at), "terminal": first.terminal, "by": first.by}


def _actions(result: str, terminal: Terminal, *, overridable: bool) -> list[str]:
    actions = ("override",) * overridable + _ACTIONS.get(result, ())
    return [action for action in actions if action != "search" or terminal.may("search")]


def name_of(reservation: Reservation, terminal: Terminal) -> _Json:
    """Return the guest's name as `terminal` shows it.

    With the role `search`, this is as much as the venue's rule says, with the last two digits of
    the phone number. With the role `scan`, it is the first name unless the rule shows whole names.
    """
    if terminal.may("search"):
        return {"customerFirstName": reservation.door_name, "phoneEnd": reservation.phone_end}
    is_whole = reservation.names_at_door == "whole"
    name = reservation.customer_name if is_whole else reservation.customer_given_name
    return {"customerFirstName": name}


def _seen(
    seen: Seen | None, current: Mapping[str, Reservation], terminal: Terminal
) -> _Json | None:
    """Return the reservation as it was at the scan, but with its current name, code and notes."""
    if seen is None:
        return None
    now = current.get(seen.id)
    return {
        "id": seen.id,
        "accessCode": now.access_code if now else None,
        **(name_of(now, terminal) if now else {"customerFirstName": None}),
        "table": {"id": seen.table_id, "name": seen.table_name},
        "date": seen.date,
        "slot": seen.slot,
        "guests": seen.guests,
        "arrived": seen.arrived,
        "out": seen.out,
        "wentOutAt": optional_instant(seen.out_at),
        "notes": now.notes if now else None,
        "vip": bool(now and now.vip),
        "status": seen.status,
    }
