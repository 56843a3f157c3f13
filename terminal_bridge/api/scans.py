"""Scans, manual check-ins, undos and offline sync (docs/guide/door-protocol.md)."""

from collections.abc import Awaitable
from typing import Any

from aiohttp import web

from appliance.clock import format_instant
from appliance.core.errors import NotFound, RoleMissing, Unavailable
from appliance.database.connection import Reader
from appliance.door.check_in import check_in, undo_check_in, undo_latest
from appliance.door.guest_pass import TEXT_LENGTH
from appliance.door.offline_sync import Synced, acknowledge_conflict, sync_scans
from appliance.door.scan import Reading, Scan, look_up_code
from appliance.door.scan_log import Decided
from appliance.door.terminals import Terminal
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT, read_object
from appliance.reservations.request import parse_uuid
from terminal_bridge.api.request import (
    Request,
    authenticate,
    parse_apart_scans,
    parse_code,
    parse_instant,
    parse_needed_reason,
    parse_people,
    parse_reason,
    parse_request,
    parse_reservation_id,
    parse_scan_id,
)
from terminal_bridge.api.wire import answer, conflict_of, error_of, verdict_of

SYNC_LIMIT = 512 * 1024  # bytes: 500 scans with their reasons
_OLDEST_MS = 48 * 3600 * 1000
_TOGETHER = 25  # scans per transaction, so that other doors do not wait for the whole batch


async def scan(request: web.Request) -> web.Response:
    """`POST /scans`: return the verdict on a scanned or typed code."""
    terminal = await authenticate(request)
    body = await read_object(request)
    wish, code = parse_request(body, terminal), parse_code(body.get("code"))
    return await _answer(decide_code(request[ENVIRONMENT], terminal, wish, code), wish, terminal)


async def check_in_by_hand(request: web.Request) -> web.Response:
    """`POST /check-ins`: return the verdict on a guest picked from the evening list."""
    terminal = await authenticate(request, "search")
    body = await read_object(request)
    wish = parse_request(body, terminal)
    reading = Reading("list", (parse_reservation_id(body.get("reservationId")),))
    return await _answer(_decide(request[ENVIRONMENT], terminal, wish, reading), wish, terminal)


async def _answer(
    deciding: Awaitable[dict[str, Any]], wish: Request, terminal: Terminal
) -> web.Response:
    """Return the verdict, or the error as a grey verdict if the box is unavailable."""
    try:
        return answer(await deciding)
    except Unavailable as fault:
        return answer(error_of(fault, wish.scan_id, terminal), fault.status, fault.headers)


async def undo(request: web.Request) -> web.Response:
    """`POST /scans/{scanId}/undo`: undo a check-in."""
    terminal = await authenticate(request)
    scan_id = parse_scan_id(request.match_info["scanId"])
    body = await read_object(request, optional=True)
    reason = parse_reason(body.get("reason"), "reason")
    decided = await request[ENVIRONMENT].database.write(undo_check_in, terminal, scan_id, reason)
    return answer(verdict_of(decided, scan_id, terminal, simulated=False))


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
    return answer(verdict_of(decided, reservation_id, terminal, simulated=False))


async def decide_code(
    environment: Environment, terminal: Terminal, wish: Request, code: str
) -> dict[str, Any]:
    """Decide a code and return the verdict as JSON types, for `POST /scans` and for scanners.

    Raises the errors of `check_in`, and Unavailable if the box cannot decide.
    """
    by_name = terminal.may("search")
    database, keyring = environment.database, environment.keyring
    if len(code) >= TEXT_LENGTH:  # a pass is one indexed lookup; typed text may need a search
        reading = database.peek(look_up_code, keyring, environment.name, code, by_name=by_name)
    else:
        reading = await database.read(
            look_up_code, keyring, environment.name, code, by_name=by_name
        )
    return await _decide(environment, terminal, wish, reading)


async def _decide(
    environment: Environment, terminal: Terminal, wish: Request, reading: Reading
) -> dict[str, Any]:
    decided: Decided = await environment.database.write(
        check_in, terminal, wish.to_scan(reading), environment.settings.door.early_minutes
    )
    return verdict_of(decided, wish.scan_id, terminal, simulated=wish.simulate)


async def sync(request: web.Request) -> web.Response:
    """`POST /sync`: decide offline scans in chronological order; return a verdict on each.

    `sentAt` is the device's current time, if given; the box corrects the scan times by it and
    clamps them to the last 48 hours.
    """
    terminal = await authenticate(request)
    environment = request[ENVIRONMENT]
    body = await read_object(request, limit=SYNC_LIMIT)
    wishes = parse_apart_scans(body.get("scans"), terminal)
    now = environment.database.clock.now()
    sent_at = parse_instant(body.get("sentAt"), "sentAt")
    ahead = 0 if sent_at is None else sent_at - now
    scans = await environment.database.read(_order, environment, terminal, wishes, now, ahead)
    results: list[dict[str, Any]] = [{}] * len(scans)
    for first in range(0, len(scans), _TOGETHER):
        some = scans[first : first + _TOGETHER]
        early, found = environment.settings.door.early_minutes, [scan for _, scan in some]
        synced = await environment.database.write(sync_scans, terminal, found, early)
        for (place, scan), each in zip(some, synced, strict=True):
            results[place] = _synced(scan, each, terminal)
    return answer({"results": results})


async def acknowledge(request: web.Request) -> web.Response:
    """`POST /conflicts/{id}/acknowledge`: mark a conflict as handled. Raises NotFound."""
    terminal = await authenticate(request, "override")
    conflict_id = parse_uuid(request.match_info["id"])
    if conflict_id is None:
        raise NotFound
    conflict = await request[ENVIRONMENT].database.write(
        acknowledge_conflict, conflict_id, actor=f"terminal:{terminal.id}"
    )
    return answer({"conflict": conflict_of(conflict, terminal)})


def _order(
    reader: Reader,
    environment: Environment,
    terminal: Terminal,
    wishes: list[Request],
    now: int,
    ahead: int,
) -> list[tuple[int, Scan]]:
    """Return (index in the request, scan) pairs in chronological order."""
    found = []
    for place, wish in enumerate(wishes):
        device_at = wish.device_at or 0  # it was required
        at = min(max(device_at - ahead, now - _OLDEST_MS), now)
        reading = _reading(reader, environment, terminal, wish, at)
        found.append((place, wish.to_scan(reading, at)))
    return sorted(found, key=lambda item: (item[1].happened_at, item[1].device_at))


def _reading(
    reader: Reader, environment: Environment, terminal: Terminal, wish: Request, at: int
) -> Reading:
    if wish.reservation_id is not None:
        # A match that the terminal made offline is no search; deciding by id now would be one.
        if wish.shown is None and not terminal.may("search"):
            raise RoleMissing(role="search")
        return Reading("list", (wish.reservation_id,))
    by_name = terminal.may("search")
    keyring, name = environment.keyring, environment.name
    return look_up_code(reader, keyring, name, wish.code, by_name=by_name, at=at)


def _synced(scan: Scan, synced: Synced, terminal: Terminal) -> dict[str, Any]:
    return {
        **verdict_of(synced.decided, scan.id, terminal, simulated=False),
        "happenedAt": format_instant(scan.happened_at or 0),
        "conflict": synced.conflict and conflict_of(synced.conflict, terminal),
    }
