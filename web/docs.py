"""The documents of the project (`/docs`), the partner interface to try, and OpenAPI."""

import asyncio
from datetime import timedelta
from urllib.parse import urlsplit

from aiohttp import web

from appliance.environment import path_prefix
from appliance.model.availability import find_closure
from appliance.model.evening import tonight
from appliance.model.guest_terms import offered_slots
from appliance.store.connection import Reader
from appliance.store.venue import get_venue, list_closings, list_slots, list_tables
from terminal_bridge.context import ENVIRONMENT
from web.api.openapi import Wish, build_document, describe_servers
from web.documents import FRONT, all_documents
from web.peer import claims_https
from web.public_page import public_page
from web.routes import PARTNER_ROUTE_TABLE
from web.wire import answer

_DAYS_AHEAD, _DAYS_TRIED, _PARTY = 7, 14, 2


async def show_document(request: web.Request) -> web.Response:
    """`GET /openapi.json`: the OpenAPI 3.1 document, this environment's server first."""
    environment = request[ENVIRONMENT]
    servers = describe_servers(_base(request), environment.name)
    wish = environment.database.peek(_find_wish)
    headers = {"Cache-Control": "no-cache"}
    return answer(build_document(PARTNER_ROUTE_TABLE, servers, wish), headers=headers)


async def show_page(request: web.Request) -> web.Response:
    """`GET /docs/{name}`: one of the documents, such as `/docs/partners/guide`, or the front page.

    The files are read, and each is rendered, on a thread when it is first asked for.
    """
    prefix = path_prefix(request[ENVIRONMENT].name)
    documents = await asyncio.to_thread(all_documents)
    name = request.match_info.get("name", FRONT)
    page = await asyncio.to_thread(documents.page, name, prefix)
    if page is None:
        raise web.HTTPNotFound
    sections = [
        (title, [(each.address(prefix), each.title, each == page.document) for each in listed])
        for title, listed in documents.sections()
    ]
    values = {**page_addresses(request), "page": page, "sections": sections}
    return public_page(request, "docs/page.html", values)


async def show_reference(request: web.Request) -> web.Response:
    """`GET /docs/reference`: every call, to read and to try. Nothing comes from outside the box."""
    # One concession over every other page: Swagger UI's stylesheet carries its icons as pictures.
    return public_page(
        request, "docs/reference.html", page_addresses(request), inline_pictures=True
    )


def page_addresses(request: web.Request) -> dict[str, object]:
    """The addresses that these pages show, as whoever asks may use them."""
    name, base = request[ENVIRONMENT].name, _base(request)
    prefix, test = path_prefix(name), path_prefix("test")
    return {
        "document_url": f"{prefix}/openapi.json",
        "documents_url": f"{prefix}/docs",
        "guide_url": f"{prefix}/docs/partners/guide",
        "reference_url": f"{prefix}/docs/reference",
        "sandbox_url": test,
        "live_base": base,
        "test_base": base + test,
        "live_reference_url": "/docs/reference",
        "test_reference_url": f"{test}/docs/reference",
    }


def _base(request: web.Request) -> str:
    """Where live was called: `server.app_url` when that is the host that was asked.

    A page opened at another address of the box may only call where it came from.
    """
    base = request[ENVIRONMENT].settings.server.app_url
    if base and urlsplit(base).netloc == request.host:
        return base
    scheme = "https" if claims_https(request) else request.scheme
    return f"{scheme}://{request.host}"


def _find_wish(reader: Reader) -> Wish:
    """A booking a week ahead that this box would grant, to be tried on the page.

    The same all day: who tries it twice sees a replay. Without a bookable table or a slot it
    stays made up, but for the date.
    """
    venue, closings, slots = get_venue(reader), list_closings(reader), list_slots(reader)
    today = tonight(reader.now, reader.zones.zone(venue.time_zone), venue.evening_ends_at)
    table = next((one for one in list_tables(reader) if one.bookable), None)
    for ahead in range(_DAYS_AHEAD, _DAYS_AHEAD + _DAYS_TRIED):
        day = today + timedelta(days=ahead)
        slot = next(iter(offered_slots(slots, day)), None)
        if table and slot and find_closure(venue, closings, day.isoformat()) is None:
            guests = max(table.capacity_min, min(_PARTY, table.capacity_max))
            return Wish(table.id, day.isoformat(), slot.start, guests, f"TRY-{day}")
    return Wish(date=(today + timedelta(days=_DAYS_AHEAD)).isoformat())


DOCS_ROUTES = (
    ("GET", "/openapi.json", show_document),
    ("GET", "/docs", show_page),
    ("GET", "/docs/reference", show_reference),
    ("GET", "/docs/{name:.+}", show_page),
)
