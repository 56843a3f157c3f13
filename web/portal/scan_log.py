"""`/portal/door/log`: the scans of an evening, and the export of the scan log."""

from collections.abc import AsyncIterator
from datetime import date, timedelta

from aiohttp import web

from appliance.core.i18n import Language
from appliance.database.connection import Reader
from appliance.door.scan_log import LogFilter, count_scans, find_broken_link, page_log
from appliance.door.scan_log_file import Export, Format
from appliance.door.terminals import list_terminals
from appliance.http.request import ENVIRONMENT
from appliance.reservations.request import parse_uuid
from appliance.reservations.rows import staff_names
from appliance.staff.audit_log import record_audit
from appliance.venue.model import evening_end
from appliance.venue.rows import find_tonight, get_venue
from web.door_app import door_words
from web.portal.forms import asked_day, asked_number
from web.portal.guard import actor_of
from web.portal.responses import instants_of, language_of, portal_page, send_file
from web.portal.session import HOUSE

_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


async def export_log(request: web.Request) -> web.StreamResponse:
    """Export an evening (`?date=`) or the whole log, as signed JSON lines or CSV."""
    environment, day = request[ENVIRONMENT], asked_day(request)
    database = environment.database
    kind: Format = "csv" if request.query.get("format") == "csv" else "jsonl"
    log = await database.read(Export, environment.name, environment.keyring, kind, day, day)
    told = day and day.isoformat()
    await database.write(record_audit, actor_of(request), "door_log_exported", date=told)

    async def lines() -> AsyncIterator[bytes]:
        yield log.begin()
        while chunk := await database.read(log.page):
            yield chunk
        yield log.end()

    name = f"door-log-{environment.name}-{day or 'all'}.{kind}"
    return await send_file(request, lines(), _TYPES[kind], name)


def result_words(language: Language) -> dict[str, str]:
    """Return the labels of the verdicts, by verdict."""
    words = door_words(language)
    return {
        name.removeprefix("word."): word for name, word in words.items() if name.startswith("word.")
    }


_PAGE = 100
_TEXT_MAX = 100


async def show_log(request: web.Request) -> web.Response:
    """`GET …/log`: the scans of `?date=` or tonight; filters `result`, `terminal`, `q`, `page`."""
    asked, page = asked_day(request), max(1, asked_number(request, "page", 1))
    wanted = LogFilter(
        refused=request.query.get("result") == "refused",
        terminal_id=parse_uuid(request.query.get("terminal", "")),
        text=" ".join(request.query.get("q", "").split())[:_TEXT_MAX],
    )

    def read(reader: Reader) -> dict[str, object]:
        day = asked or find_tonight(reader)
        log = page_log(reader, *evening_bounds(reader, day), wanted, _PAGE, page)
        return {
            "day": day,
            "before": day - timedelta(days=1),
            "after": day + timedelta(days=1),
            "log": log,
            "pages": max(1, -(-log.total // _PAGE)),
            "terminals": list_terminals(reader),
        }

    values = {
        **await request[ENVIRONMENT].database.read(read),
        "wanted": wanted,
        "page": page,
        "staff": await request[HOUSE].database.read(staff_names),
        "results": result_words(language_of(request)),
        "in_words": instants_of(request),
    }
    return portal_page(request, "portal/door/log.html", values)


async def check_log(request: web.Request) -> web.Response:
    """`GET …/log/check`: verify the hash chain of the whole log."""
    count, broken = await request[ENVIRONMENT].database.read(
        lambda reader: (count_scans(reader), find_broken_link(reader))
    )
    return portal_page(request, "portal/door/check.html", {"count": count, "broken": broken})


def evening_bounds(reader: Reader, day: date) -> tuple[int, int]:
    """Return start and end of the evening of `day`, in ms since 1970."""
    venue = get_venue(reader)
    zone = reader.zones.zone(venue.time_zone)
    begins = evening_end(day - timedelta(days=1), zone, venue.evening_ends_at)
    return begins, evening_end(day, zone, venue.evening_ends_at)
