"""`/portal/door/log`: every scan of an evening, and whether the whole log is whole."""

from datetime import date, timedelta

from aiohttp import web

from appliance.model.booking import parse_uuid
from appliance.model.evening import evening_end
from appliance.store.connection import Reader
from appliance.store.history import staff_names
from appliance.store.log_pages import LogFilter, page_log
from appliance.store.readings import find_tonight
from appliance.store.scans import count_scans, find_broken_link
from appliance.store.terminals import list_terminals
from appliance.store.venue import get_venue
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import instants_of, language_of, portal_page
from web.portal.context import HOUSE
from web.portal.door.words import result_words
from web.portal.forms import asked_day, asked_number

_PAGE = 100
_TEXT_MAX = 100


async def show_log(request: web.Request) -> web.Response:
    """`GET …/log`: the scans of `?date=`, else of tonight; `result`, `terminal`, `q`, `page`."""
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
    """`GET …/log/check`: every row is hashed again, in the order of the log."""
    count, broken = await request[ENVIRONMENT].database.read(
        lambda reader: (count_scans(reader), find_broken_link(reader))
    )
    return portal_page(request, "portal/door/check.html", {"count": count, "broken": broken})


def evening_bounds(reader: Reader, day: date) -> tuple[int, int]:
    """From when to when the evening of `day` lasts, in ms since 1970."""
    venue = get_venue(reader)
    zone = reader.zones.zone(venue.time_zone)
    begins = evening_end(day - timedelta(days=1), zone, venue.evening_ends_at)
    return begins, evening_end(day, zone, venue.evening_ends_at)
