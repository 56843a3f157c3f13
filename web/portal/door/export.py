"""`/portal/door/log/export`: the door log as a file, written while it is read."""

import asyncio
from datetime import date

from aiohttp import web

from appliance.actions.note_security import note_security
from appliance.door_log import Export, Format
from appliance.store.connection import Transaction
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import HEADERS
from web.portal.door.log import asked_day
from web.portal.guard import actor_of

_PATIENCE_SECONDS = 5.0  # for a browser that does not read; a stop of the box waits no longer
_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


async def export_log(request: web.Request) -> web.StreamResponse:
    """One evening (`?date=`) or everything, as signed JSON lines, or as a CSV."""
    environment, day = request[ENVIRONMENT], asked_day(request)
    database = environment.database
    kind: Format = "csv" if request.query.get("format") == "csv" else "jsonl"
    log = await database.read(Export, environment.name, environment.keyring, kind, day, day)
    await database.write(_note, actor_of(request), day)
    name = f"door-log-{environment.name}-{day or 'all'}.{kind}"
    disposition = f'attachment; filename="{name}"'
    headers = {**HEADERS, "Content-Type": _TYPES[kind], "Content-Disposition": disposition}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    chunk = log.begin()
    while chunk:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await response.write(chunk)
        chunk = await database.read(log.page)
    await response.write(log.end())
    await response.write_eof()
    return response


def _note(tx: Transaction, actor: str, day: date | None) -> None:
    note_security(tx, actor, "door_log_exported", date=day.isoformat() if day else None)
