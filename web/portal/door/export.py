"""`/portal/door/log/export`: the door log as a signed file, written while it is read."""

import asyncio
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import IO, Any, cast

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.actions.note_security import note_security
from appliance.clock import format_instant
from appliance.door_log.export import Request, write_export
from appliance.door_log.lines import Format
from appliance.environment import Environment
from appliance.store.connection import Reader, Transaction
from appliance.store.scan_log import list_types, measure_stretch
from appliance.store.signing_keys import get_signing_key
from appliance.store.venue import get_venue
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import HEADERS
from web.portal.door.log import asked_day, evening_bounds
from web.portal.door.rows import read_rows
from web.portal.guard import actor_of

_CHUNK = 64 * 1024
_PATIENCE_SECONDS = 5.0  # for a browser that does not read; a stop of the box waits no longer


@dataclass(frozen=True, slots=True)
class _Prepared:
    request: Request
    key: Ed25519PrivateKey


async def export_log(request: web.Request) -> web.StreamResponse:
    """One evening (`?date=`) or everything, as JSON lines, or as CSV with its signature (zip)."""
    environment, loop = request[ENVIRONMENT], asyncio.get_running_loop()
    kind: Format = "csv" if request.query.get("format") == "csv" else "jsonl"
    day = asked_day(request)
    prepared = await environment.database.read(_prepare, environment, kind, day)
    await environment.database.write(_note, actor_of(request), day.isoformat() if day else None)
    name = f"door-log-{environment.name}-{day or 'all'}.{kind}"
    response = web.StreamResponse(headers={**HEADERS, **_file_headers(name, kind)})
    await response.prepare(request)

    async def deliver(chunk: bytes) -> None:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await response.write(chunk)

    def send(chunk: bytes) -> None:  # in the thread; waits until the reader has taken it
        asyncio.run_coroutine_threadsafe(deliver(chunk), loop).result(2 * _PATIENCE_SECONDS)

    rows = read_rows(environment.database, loop, prepared.request.stretch)

    def write_all() -> None:
        gathered = _Gathered(send)
        if kind == "csv":
            _write_zip(gathered, name, lambda write: write_export(
                prepared.request, rows, prepared.key, write).statement)  # fmt: skip
        else:
            write_export(prepared.request, rows, prepared.key, gathered.write)
        gathered.send_rest()

    await asyncio.to_thread(write_all)
    await response.write_eof()
    return response


class _Gathered(io.RawIOBase):
    """A file for writing only, whose bytes leave in chunks."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        super().__init__()
        self._send = send
        self._waiting = bytearray()

    def writable(self) -> bool:
        """Yes; it cannot be sought, which ZipFile respects."""
        return True

    def write(self, data: Any, /) -> int:
        """Keep `data`, and send what has gathered once it is a chunk."""
        self._waiting += data
        if len(self._waiting) >= _CHUNK:
            self.send_rest()
        return len(data)

    def send_rest(self) -> None:
        """Send what waits.

        Never by `flush`: Python calls that when it clears away a file that was given up, on
        whichever thread, and the loop would wait for itself.
        """
        if self._waiting:
            self._send(bytes(self._waiting))
            self._waiting.clear()


def _write_zip(
    file: _Gathered, name: str, write: Callable[[Callable[[bytes], object]], str]
) -> None:
    """The CSV and, beside it as `venuebox doorlog verify` wants it, its signed statement."""
    with zipfile.ZipFile(cast("IO[bytes]", file), "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(name, "w", force_zip64=True) as entry:
            statement = write(entry.write)
        archive.writestr(f"{name}.statement.json", statement + "\n")


def _file_headers(name: str, kind: Format) -> dict[str, str]:
    saved = f"{name}.zip" if kind == "csv" else name
    return {
        "Content-Type": "application/zip" if kind == "csv" else "application/x-ndjson",
        "Content-Disposition": f'attachment; filename="{saved}"',
    }


def _prepare(reader: Reader, environment: Environment, kind: Format, day: date | None) -> _Prepared:
    venue = get_venue(reader)
    bounds = (None, None) if day is None else evening_bounds(reader, day)
    asked = None if day is None else day.isoformat()
    wanted = Request(
        kind=kind,
        environment=environment.name,
        venue=venue,
        zone=reader.zones.zone(venue.time_zone),
        types=list_types(reader),
        asked=(asked, asked),
        stretch=measure_stretch(reader, *bounds),
        now=format_instant(reader.now),
    )
    return _Prepared(wanted, get_signing_key(reader, environment.keyring)[1])


def _note(tx: Transaction, actor: str, day: str | None) -> None:
    note_security(tx, actor, "door_log_exported", date=day)
