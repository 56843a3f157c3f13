"""Scans made while offline, and the conflicts they cause (docs/guide/door-protocol.md)."""

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from appliance.actions.acknowledge_conflict import acknowledge_conflict
from appliance.actions.sync_scans import Synced, sync_scans
from appliance.clock import format_instant
from appliance.environment import Environment
from appliance.house_errors import RoleMissing
from appliance.model.scan import Reading, Scan
from appliance.model.terminal import Terminal
from appliance.store.connection import Reader
from appliance.store.readings import read_code
from terminal_bridge.authentication import authenticate
from terminal_bridge.body import read_object
from terminal_bridge.context import ENVIRONMENT
from terminal_bridge.reading import (
    ApartScan,
    parse_apart_scans,
    parse_conflict_id,
    parse_sent_at,
)
from terminal_bridge.wire import answer, verdict_of
from terminal_bridge.wire_events import conflict_of

SYNC_LIMIT = 512 * 1024  # bytes: 500 scans with their reasons
_OLDEST_MS = 48 * 3600 * 1000
_TOGETHER = 25  # in one transaction: other doors need not wait for all of them


@dataclass(frozen=True, slots=True)
class _Read:
    """A scan with its place in the request."""

    place: int
    scan: Scan


async def sync(request: web.Request) -> web.Response:
    """`POST /sync`: a verdict on each, decided in the order in which they happened.

    `sentAt` is the device's clock now, if it tells: the box corrects the others by it. No scan
    is taken to be of the future, nor older than two days.
    """
    terminal = await authenticate(request)
    environment = request[ENVIRONMENT]
    body = await read_object(request, limit=SYNC_LIMIT)
    wishes = parse_apart_scans(body.get("scans"), terminal)
    now = environment.database.clock.now()
    sent_at = parse_sent_at(body.get("sentAt"))
    ahead = 0 if sent_at is None else sent_at - now
    scans = await environment.database.read(_read, environment, terminal, wishes, now, ahead)
    results = await _decide(environment, terminal, scans)
    return answer({"results": results})


async def acknowledge(request: web.Request) -> web.Response:
    """`POST /conflicts/{id}/acknowledge`: somebody at the door has dealt with it."""
    terminal = await authenticate(request, "override")
    conflict_id = parse_conflict_id(request.match_info["id"])
    conflict = await request[ENVIRONMENT].database.write(
        acknowledge_conflict, conflict_id, actor=f"terminal:{terminal.id}"
    )
    return answer({"conflict": conflict_of(conflict, terminal)})


def _read(
    reader: Reader,
    environment: Environment,
    terminal: Terminal,
    wishes: list[ApartScan],
    now: int,
    ahead: int,
) -> list[_Read]:
    """What was read, in the order in which it happened."""
    found = []
    for place, wish in enumerate(wishes):
        at = min(max(wish.device_at - ahead, now - _OLDEST_MS), now)
        scan = Scan(
            id=wish.scan_id,
            reading=_reading(reader, environment, terminal, wish, at),
            arrivals=wish.arrivals,
            reason=wish.reason,
            device_at=wish.device_at,
            shown=wish.shown,
            happened_at=at,
        )
        found.append(_Read(place, scan))
    return sorted(found, key=lambda read: (read.scan.happened_at, read.scan.device_at))


def _reading(
    reader: Reader, environment: Environment, terminal: Terminal, wish: ApartScan, at: int
) -> Reading:
    if wish.reservation_id is not None:
        # Whom it took somebody for by its own list is no search; what is decided now would be.
        if wish.shown is None and not terminal.may("search"):
            raise RoleMissing(role="search")
        return Reading("list", (wish.reservation_id,))
    return read_code(
        reader,
        environment.keyring,
        environment.name,
        wish.code,
        by_name=terminal.may("search"),
        at=at,
    )


async def _decide(
    environment: Environment, terminal: Terminal, reads: list[_Read]
) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = [{}] * len(reads)
    for first in range(0, len(reads), _TOGETHER):
        some = reads[first : first + _TOGETHER]
        synced = await environment.database.write(
            sync_scans,
            terminal,
            [read.scan for read in some],
            environment.settings.door.early_minutes,
        )
        for read, found in zip(some, synced, strict=True):
            results[read.place] = _result(read.scan, found, terminal)
    return results


def _result(scan: Scan, synced: Synced, terminal: Terminal) -> dict[str, Any]:
    conflict = synced.conflict
    return {
        **verdict_of(synced.decided, scan.id, terminal, simulated=False),
        "happenedAt": format_instant(scan.happened_at or 0),
        "conflict": None if conflict is None else conflict_of(conflict, terminal),
    }
