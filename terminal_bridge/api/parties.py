"""Reports of door staff: walk-ins, and parties that did not come or have left."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from aiohttp import web

from appliance.core.errors import field_invalid
from appliance.database.connection import Reader
from appliance.door.check_in import check_in
from appliance.door.parties import list_walk_in_tables, party_left, party_stays, seat_at_door
from appliance.door.scan import WALK_IN
from appliance.http.request import ENVIRONMENT, answer, read_object
from appliance.reservations.leave import mark_no_show
from appliance.reservations.model import Reservation, late_from
from appliance.reservations.request import parse_uuid
from terminal_bridge.api.evening import guest_of
from terminal_bridge.api.protocol import (
    answer_decided,
    authenticate,
    decide,
    parse_people,
    parse_request,
    parse_reservation_id,
)

_DIGITS_MAX = 9


async def tables(request: web.Request) -> web.Response:
    """`GET /tables?guests=`: return the free tables of the current slot, best first.

    Raises InvalidSlot if no slot is on.
    """
    await authenticate(request, "override")
    text = request.query.get("guests", "1")
    number = int(text) if text.isdecimal() and len(text) < _DIGITS_MAX else 0
    guests = parse_people(number, "guests")
    return answer(await request[ENVIRONMENT].database.read(_list_tables, guests or 1))


def _list_tables(reader: Reader, guests: int) -> dict[str, Any]:
    slot, found = list_walk_in_tables(reader, guests)
    return {
        "slot": {"start": slot.start, "end": slot.end} if slot else None,
        "items": [
            {"id": table.id, "name": table.name, "number": table.number,
             "capacityMax": table.capacity_max}
            for table in found
        ],
    }  # fmt: skip


async def walk_in(request: web.Request) -> web.Response:
    """`POST /walk-ins`: seat a party without a reservation, or count people without a table.

    Raises the errors of `seat_at_door`.
    """
    terminal = await authenticate(request, "override")
    body = await read_object(request)
    scanned = parse_request(body, terminal)
    table_id = parse_uuid(body.get("tableId"))
    if table_id is None and body.get("tableId") is not None:
        raise field_invalid("tableId", "a UUID expected.")
    scanned = replace(scanned, reading=WALK_IN, simulate=False)
    is_seated = table_id and not scanned.leaving
    act = partial(seat_at_door, table_id or "") if is_seated else check_in
    deciding = decide(request[ENVIRONMENT], terminal, scanned, act)
    return await answer_decided(deciding, scanned.id, terminal)


async def left(request: web.Request) -> web.Response:
    """`POST /reservations/{id}/left`: record that a party has left. Return its row.

    Raises NotFound if the id is unknown, and WrongState unless somebody of the party has come in.
    """
    return await _report(request, party_left)


async def no_show(request: web.Request) -> web.Response:
    """`POST /reservations/{id}/no-show`: record that a party did not come. Return its row.

    Raises the errors of `mark_no_show`.
    """
    return await _report(request, mark_no_show)


async def back(request: web.Request) -> web.Response:
    """`POST /reservations/{id}/take-back`: undo `left` or `no-show`. Return the row.

    Raises the errors of `party_stays`.
    """
    return await _report(request, party_stays)


async def _report(request: web.Request, act: Callable[..., Reservation]) -> web.Response:
    terminal = await authenticate(request, "override")
    options = {} if act is mark_no_show else {"terminal": terminal}
    reservation_id = parse_reservation_id(request.match_info["id"])
    actor, database = f"terminal:{terminal.id}", request[ENVIRONMENT].database
    found = await database.write(act, reservation_id, actor=actor, **options)
    return answer({"reservation": guest_of(found, terminal, database.peek(late_from, found))})
