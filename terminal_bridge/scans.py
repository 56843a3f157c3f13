"""Scans, manual check-ins and undos (docs/guide/door-protocol.md)."""

from typing import Any

from aiohttp import web

from appliance.actions.check_in import check_in
from appliance.actions.log_scan import Decided
from appliance.actions.undo_check_in import undo_check_in, undo_latest
from appliance.environment import Environment
from appliance.errors import Unavailable
from appliance.model.guest_pass import TEXT_LENGTH
from appliance.model.scan import Reading, Scan
from appliance.model.terminal import Terminal
from appliance.store.readings import read_code
from terminal_bridge.authentication import authenticate
from terminal_bridge.body import read_object
from terminal_bridge.context import ENVIRONMENT
from terminal_bridge.reading import (
    Request,
    parse_code,
    parse_needed_reason,
    parse_people,
    parse_reason,
    parse_request,
    parse_reservation_id,
    parse_scan_id,
)
from terminal_bridge.wire import answer, error_of, verdict_of


async def scan(request: web.Request) -> web.Response:
    """`POST /scans`: the verdict on whatever was read or typed."""
    terminal = await authenticate(request)
    body = await read_object(request)
    wish, code = parse_request(body, terminal), parse_code(body.get("code"))
    try:
        return answer(await decide_code(request[ENVIRONMENT], terminal, wish, code))
    except Unavailable as fault:
        return answer(error_of(fault, wish.scan_id, terminal), fault.status, fault.headers)


async def check_in_by_hand(request: web.Request) -> web.Response:
    """`POST /check-ins`: the verdict on a guest picked from the evening list."""
    terminal = await authenticate(request, "search")
    body = await read_object(request)
    wish = parse_request(body, terminal)
    reading = Reading("list", (parse_reservation_id(body.get("reservationId")),))
    try:
        return answer(await _decide(request[ENVIRONMENT], terminal, wish, reading))
    except Unavailable as fault:
        return answer(error_of(fault, wish.scan_id, terminal), fault.status, fault.headers)


async def undo(request: web.Request) -> web.Response:
    """`POST /scans/{scanId}/undo`: take a check-in back."""
    terminal = await authenticate(request)
    scan_id = parse_scan_id(request.match_info["scanId"])
    body = await read_object(request, optional=True)
    reason = parse_reason(body.get("reason"), "reason")
    decided = await request[ENVIRONMENT].database.write(undo_check_in, terminal, scan_id, reason)
    return answer(verdict_of(decided, scan_id, terminal, simulated=False))


async def undo_by_hand(request: web.Request) -> web.Response:
    """`POST /check-ins/{id}/undo`: a party's latest check-in is taken back."""
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
    """The verdict on a code, as the wire shows it: for `POST /scans` and for every reader.

    Refusals as `check_in`; Unavailable when nothing could be decided.
    """
    reading = await _read(environment, terminal, code)
    return await _decide(environment, terminal, wish, reading)


async def _read(environment: Environment, terminal: Terminal, code: str) -> Reading:
    """What was read. A pass is one indexed row; what people type may mean a search."""
    by_name = terminal.may("search")
    database, keyring = environment.database, environment.keyring
    if len(code) >= TEXT_LENGTH:
        return database.peek(read_code, keyring, environment.name, code, by_name=by_name)
    return await database.read(read_code, keyring, environment.name, code, by_name=by_name)


async def _decide(
    environment: Environment, terminal: Terminal, wish: Request, reading: Reading
) -> dict[str, Any]:
    decided: Decided = await environment.database.write(
        check_in,
        terminal,
        Scan(
            id=wish.scan_id,
            reading=reading,
            arrivals=wish.arrivals,
            reason=wish.reason,
            simulate=wish.simulate,
            device_at=wish.device_at,
        ),
        environment.settings.door.early_minutes,
    )
    return verdict_of(decided, wish.scan_id, terminal, simulated=wish.simulate)
