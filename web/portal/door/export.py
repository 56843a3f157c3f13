"""`/portal/door/log/export`: the door log as a file, written while it is read."""

from collections.abc import AsyncIterator

from aiohttp import web

from appliance.actions.note_security import note_security
from appliance.door_log import Export, Format
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import send_file
from web.portal.forms import asked_day
from web.portal.guard import actor_of

_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


async def export_log(request: web.Request) -> web.StreamResponse:
    """One evening (`?date=`) or everything, as signed JSON lines, or as a CSV."""
    environment, day = request[ENVIRONMENT], asked_day(request)
    database = environment.database
    kind: Format = "csv" if request.query.get("format") == "csv" else "jsonl"
    log = await database.read(Export, environment.name, environment.keyring, kind, day, day)
    told = day and day.isoformat()
    await database.write(note_security, actor_of(request), "door_log_exported", date=told)

    async def lines() -> AsyncIterator[bytes]:
        yield log.begin()
        while chunk := await database.read(log.page):
            yield chunk
        yield log.end()

    name = f"door-log-{environment.name}-{day or 'all'}.{kind}"
    return await send_file(request, lines(), _TYPES[kind], name)
