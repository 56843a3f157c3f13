"""Offline scans, which a terminal sends once it is online again, and their conflicts."""

from dataclasses import replace
from typing import Any

from aiohttp import web

from appliance.clock import format_instant
from appliance.core.errors import NotFound, RoleMissing
from appliance.database.connection import Reader
from appliance.door.check_in import OLDEST_MS
from appliance.door.offline_sync import Admitted, Conflict, Synced, acknowledge_conflict, sync_scans
from appliance.door.scan import WALK_IN, Reading, Scan, look_up_code
from appliance.door.terminals import Terminal
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT, answer, parse_instant, read_object
from appliance.reservations.request import parse_uuid
from terminal_bridge.api.protocol import (
    OfflineScan,
    authenticate,
    parse_flag,
    parse_offline_scans,
    verdict_of,
)

SYNC_LIMIT = 512 * 1024  # in bytes, enough for 500 scans with reasons
_BATCH = 25  # scans per transaction; scans from other terminals wait until it ends
_NOWHERE: dict[str, Any] = {"terminalId": None, "terminal": None}


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
        synced = await environment.database.write(sync_scans, terminal, [*batch.values()])
        for (index, scan), result in zip(batch.items(), synced, strict=True):
            results[index] = _synced(scan, result, terminal)
    return answer({"results": [results[index] for index in sorted(results)]})


async def acknowledge(request: web.Request) -> web.Response:
    """`POST /conflicts/{id}/acknowledge`: mark a conflict as handled.

    With `correct: true`, lower the number who arrived to the booked number. Raises NotFound if
    there is no such conflict.
    """
    terminal = await authenticate(request, "override")
    conflict_id = parse_uuid(request.match_info["id"])
    if conflict_id is None:
        raise NotFound
    corrects = parse_flag(await read_object(request, optional=True), "correct")
    conflict = await request[ENVIRONMENT].database.write(
        acknowledge_conflict, conflict_id, actor=f"terminal:{terminal.id}",
        corrects=terminal if corrects else None,
    )  # fmt: skip
    return answer({"conflict": conflict_of(conflict, terminal)})


def _order(
    reader: Reader, environment: Environment, terminal: Terminal, requests: list[OfflineScan],
    sent_at: int | None,
) -> list[tuple[int, Scan]]:  # fmt: skip
    """Return pairs of a scan's index in the request and the scan, in chronological order."""
    now = reader.now
    ahead = 0 if sent_at is None else sent_at - now
    found = []
    for index, offline in enumerate(requests):
        # `device_at` is never None, because the parser requires it.
        device_at = offline.scan.device_at or 0
        at = min(max(device_at - ahead, now - OLDEST_MS), now)
        reading = _read(reader, environment, terminal, offline, at)
        found.append((index, replace(offline.scan, reading=reading, happened_at=at)))
    return sorted(found, key=lambda item: (item[1].happened_at, item[1].device_at))


def _read(
    reader: Reader, environment: Environment, terminal: Terminal, offline: OfflineScan, at: int
) -> Reading:
    may_search = terminal.may("search")
    if offline.scan.reading is WALK_IN:
        return WALK_IN
    if offline.reservation_id is not None:
        # If `shown` is set, the terminal had already matched the guest while it was offline.
        # Otherwise, the guest was picked from the list, which requires the role `search`.
        if offline.scan.shown is None and not may_search:
            raise RoleMissing(role="search")
        return Reading("list", (offline.reservation_id,))
    keyring, name = environment.keyring, environment.name
    return look_up_code(reader, keyring, name, offline.code, by_name=may_search, at=at)


def _synced(scan: Scan, synced: Synced, terminal: Terminal) -> dict[str, Any]:
    decided, conflict = synced
    return {
        **verdict_of(decided, scan.id, terminal),
        "happenedAt": format_instant(scan.happened_at or 0),
        "conflict": conflict and conflict_of(conflict, terminal),
    }


def conflict_of(conflict: Conflict, terminal: Terminal) -> dict[str, Any]:
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


def _admitted(admission: Admitted) -> dict[str, Any]:
    at = format_instant(admission.at)
    return {"terminalId": admission.terminal_id, "terminal": admission.terminal, "at": at}
