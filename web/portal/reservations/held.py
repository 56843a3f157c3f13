"""What is held of one guest, as a file for them (law 09-08)."""

import json

from aiohttp import web

from appliance.actions.export_guest import export_guests
from appliance.actions.note_security import note_security
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import HEADERS
from web.portal.guard import staff_of
from web.portal.reservations.detail import reservation_id_of


async def export_one(request: web.Request) -> web.Response:
    """`GET /portal/reservations/{id}/held.json`: the same as the guest's own page gives them."""
    database, reservation_id = request[ENVIRONMENT].database, reservation_id_of(request)
    held = await database.read(export_guests, [reservation_id])
    name = f"reservation-{reservation_id}.json"
    await database.write(note_security, f"staff:{staff_of(request).id}", "exported", name=name)
    return web.Response(
        body=json.dumps(held, ensure_ascii=False, indent=2).encode(),
        content_type="application/json",
        headers={**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'},
    )
