"""Scans, manual check-ins, undos and offline sync (docs/guide/door-protocol.md)."""

from collections.abc import Awaitable
from typing import Any

from aiohttp import web

from appliance.clock import format_instant
from appliance.core.errors import NotFound, RoleMissing, Unavailable
from appliance.database.connection import Reader
from appliance.door.check_in import OLDEST_MS, Decided, check_in, undo_check_in, undo_latest
from appliance.door.guest_pass import TEXT_LENGTH
from appliance.door.offline_sync import Synced, acknowledge_conflict, sync_scans
from appliance.door.scan import Reading, Scan, look_up_code
from appliance.door.terminals import Terminal
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT, answer, parse_instant, read_object
from appliance.reservations.request import parse_uuid
from terminal_bridge.api.protocol import (
    ScanRequest,
    authenticate,
    conflict_of,
    error_of,
    parse_code,
    parse_needed_reason,
    parse_offline_scans,
    parse_people,
    parse_reason,
    parse_request,
    parse_reservation_id,
    parse_scan_id,
    verdict_of,
)

SYNC_LIMIT = 512 * 1024  # in bytes, enough for 500 scans with reasons
_BATCH = 25  # scans per transaction; scans from other terminals wait until it ends


async def scan(request: web.Request) -> web.Response:
    """`POST /scans`: return the verdict on a scanned or typed code."""
    terminal = await authenticate(request)
    body = await read_object(request)
    scanned, code = parse_request(body, terminal), parse_code(body.get("code"))
    deciding = decide_code(request[ENVIRONMENT], terminal, scanned, code)
    return await _answer(deciding, scanned, terminal)


async def check_in_by_hand(request: web.Request) -> web.Response:
    """`POST /check-ins`: check in a guest picked from the evening list."""
    terminal = await authenticate(request, "search")
    body = await read_object(request)
    picked = parse_request(body, terminal)
    reading = Reading("list", (parse_reservation_id(body.get("reservationId")),))
    return await _answer(_decide(request[ENVIRONMENT], terminal, picked, reading), picked, terminal)


async def _answer(
    deciding: Awaitable[dict[str, Any]], scan_request: ScanRequest, terminal: Terminal
) -> web.Response:
    """Respond with the verdict or, if the box is unavailable, with a grey verdict and the error."""
    try:
        return answer(await deciding)
    except Unavailable as error:
        return answer(error_of(error, scan_request.scan_id, terminal), error.status, error.headers)


async def undo(request: web.Request) -> web.Response:
    """`POST /scans/{scanId}/undo`: undo a check-in."""
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
    environment: Environment, terminal: Terminal, scan_request: ScanRequest, code: str
) -> dict[str, Any]:
    """Decide a code for `POST /scans` or an attached scanner. Return the verdict's JSON object.

    Raises the same errors as `check_in`, and Unavailable if the box cannot decide.
    """
    database, by_name = environment.database, terminal.may("search")
    scanned = environment.keyring, environment.name, code
    # A pass is found quickly through an index, so it is read at once. Typed text may need a slow
    # search, which runs in a reader thread.
    if len(code) >= TEXT_LENGTH:
        reading = database.peek(look_up_code, *scanned, by_name=by_name)
    else:
        reading = await database.read(look_up_code, *scanned, by_name=by_name)
    return await _decide(environment, terminal, scan_request, reading)


async def _decide(
    environment: Environment, terminal: Terminal, scan_request: ScanRequest, reading: Reading
) -> dict[str, Any]:
    decided: Decided = await environment.database.write(
        check_in, terminal, scan_request.to_scan(reading), environment.settings.door.early_minutes
    )
    return verdict_of(decided, scan_request.scan_id, terminal, simulated=scan_request.simulate)


async def sync(request: web.Request) -> web.Response:
    """`POST /sync`: decide offline scans in chronological order.

    The optional `sentAt` is the device's current time. The box uses it to correct the scan times,
    which it then clamps to the last 48 hours.
    """
    terminal = await authenticate(request)
    environment = request[ENVIRONMENT]
    body = await read_object(request, limit=SYNC_LIMIT)
    requests = parse_offline_scans(body.get("scans"), terminal)
    sent_at = parse_instant(body.get("sentAt"), "sentAt")
    scans = await environment.database.read(_order, environment, terminal, requests, sent_at)
    results: dict[int, dict[str, Any]] = {}
    for first in range(0, len(scans), _BATCH):
        batch = dict(scans[first : first + _BATCH])
        synced = await environment.database.write(
            sync_scans, terminal, [*batch.values()], environment.settings.door.early_minutes
        )
        for (index, scan), result in zip(batch.items(), synced, strict=True):
            results[index] = _synced(scan, result, terminal)
    return answer({"results": [results[index] for index in sorted(results)]})


async def acknowledge(request: web.Request) -> web.Response:
    """`POST /conflicts/{id}/acknowledge`: mark a conflict as handled.

    Raises NotFound if there is no such conflict.
    """
    terminal = await authenticate(request, "override")
    conflict_id = parse_uuid(request.match_info["id"])
    if conflict_id is None:
        raise NotFound
    conflict = await request[ENVIRONMENT].database.write(
        acknowledge_conflict, conflict_id, actor=f"terminal:{terminal.id}"
    )
    return answer({"conflict": conflict_of(conflict, terminal)})


def _order(
    reader: Reader, environment: Environment, terminal: Terminal, requests: list[ScanRequest],
    sent_at: int | None,
) -> list[tuple[int, Scan]]:  # fmt: skip
    """Return pairs of a scan's index in the request and the scan, in chronological order."""
    now = reader.now
    ahead = 0 if sent_at is None else sent_at - now
    found = []
    for index, scan_request in enumerate(requests):
        # `device_at` is never None, because the parser requires it.
        device_at = scan_request.device_at or 0
        at = min(max(device_at - ahead, now - OLDEST_MS), now)
        reading = _reading(reader, environment, terminal, scan_request, at)
        found.append((index, scan_request.to_scan(reading, at)))
    return sorted(found, key=lambda item: (item[1].happened_at, item[1].device_at))


def _reading(
    reader: Reader, environment: Environment, terminal: Terminal, scan_request: ScanRequest, at: int
) -> Reading:
    may_search = terminal.may("search")
    if scan_request.reservation_id is not None:
        # If `shown` is set, the terminal had already matched the guest while it was offline.
        # Otherwise, the guest was picked from the list, which requires the role `search`.
        if scan_request.shown is None and not may_search:
            raise RoleMissing(role="search")
        return Reading("list", (scan_request.reservation_id,))
    keyring, name = environment.keyring, environment.name
    return look_up_code(reader, keyring, name, scan_request.code, by_name=may_search, at=at)


def _synced(scan: Scan, synced: Synced, terminal: Terminal) -> dict[str, Any]:
    return {
        **verdict_of(synced.decided, scan.id, terminal),
        "happenedAt": format_instant(scan.happened_at or 0),
        "conflict": synced.conflict and conflict_of(synced.conflict, terminal),
    }
