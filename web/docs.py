"""The project's documentation (`/docs`), the API explorer, and the OpenAPI document.

`make` renders docs/ to `static/documents` (docs/render.py).
"""

import hashlib
import json
from datetime import timedelta
from functools import cache, lru_cache
from html import escape
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec.json
from aiohttp import web

from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT, claims_https
from appliance.venue.model import (
    find_closure,
    find_tonight,
    get_venue,
    list_closings,
    list_slots,
    list_tables,
    offered_slots,
)
from web.api.openapi import ExampleBooking, build_document, describe_servers
from web.api.postman import make_collection
from web.portal.cookies import BOX
from web.rendering import STATIC_FILES, Html, public_page
from web.routes import PARTNER_ROUTE_TABLE

_DOCUMENTS = Path(__file__).parent / "static" / "documents"
_BASE = "https://base.invalid"
_DAYS_AHEAD, _DAYS_TRIED, _PARTY = 7, 14, 2
# Patterns for the places in the guides' HTML that contain a value from ExampleBooking.
_EXAMPLE_PLACES = ("&quot;{}&quot;", "DAY={}", "SLOT={}", "&quot;guests&quot;: {}")


async def show_document(request: web.Request) -> web.Response:
    """`GET /openapi.json`: return the OpenAPI 3.1 document, or 304 if the ETag matches.

    Its list of servers begins with this environment's server.
    """
    environment = request[ENVIRONMENT]
    example = environment.database.peek(_find_example)
    template, mark = _document(environment.name, example)
    base = _base(request)
    etag = hashlib.sha256(f"{mark} {base}".encode()).hexdigest()[:32]
    headers = {"Cache-Control": "no-cache", "ETag": f'"{etag}"'}
    if etag in {tag.value for tag in request.if_none_match or ()}:
        return web.Response(status=304, headers=headers)
    body = template.replace(_BASE.encode(), base.encode())
    return web.Response(body=body, content_type="application/json", headers=headers)


async def send_postman(request: web.Request) -> web.Response:
    """`GET /docs/postman.json`: return the API as a Postman collection for this environment."""
    environment = request[ENVIRONMENT]
    template = _collection(environment.name, environment.database.peek(_find_example))
    body = template.replace(_BASE.encode(), _base(request).encode())
    name = f"venuebox-{environment.name}.postman_collection.json"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return web.Response(body=body, content_type="application/json", headers=headers)


@lru_cache(maxsize=8)
def _document(environment: str, example: ExampleBooking) -> tuple[bytes, str]:
    """Return the document as JSON, with _BASE for the base URL, and its hash.

    It is cached, because making it takes 10 ms, which would delay scans.
    """
    servers = describe_servers(_BASE, environment)
    document = msgspec.json.encode(build_document(PARTNER_ROUTE_TABLE, servers, example))
    return document, hashlib.sha256(document).hexdigest()


@lru_cache(maxsize=8)
def _collection(environment: str, example: ExampleBooking) -> bytes:
    """Return the Postman collection of `_document`, cached as well."""
    document, _ = _document(environment, example)
    return msgspec.json.encode(make_collection(json.loads(document)))


async def show_front(request: web.Request) -> web.Response:
    """Redirect to the front page, whose links are relative to `/docs`."""
    return web.Response(status=303, headers={"Location": f"{request[ENVIRONMENT].prefix}/docs"})


async def show_page(request: web.Request) -> web.Response:
    """`GET /docs/{name}`: show a document, e.g. `/docs/partners/guide`, or the front page."""
    name = request.match_info.get("name", "index")
    if name.endswith("/"):
        location = f"{request[ENVIRONMENT].prefix}/docs/{name.strip('/')}"
        return web.Response(status=303, headers={"Location": location})
    contents = _contents()
    section = next((title for title, documents in contents.items() if name in documents), None)
    if section is None:
        raise web.HTTPNotFound
    body = _body(name)
    if name.startswith("partners/"):
        # The calls in the guide go to the test environment.
        example = request.app[BOX].test.database.peek(_find_example)
        body = _with_own_values(name, _base(request), example)
    packages = request.config_dict[STATIC_FILES].names("clients")
    values = {
        "name": name, "section": section, "contents": contents, "body": body, "packages": packages,
    }  # fmt: skip
    return public_page(request, "docs/page.html", {**addresses(request), **values})


@cache
def _contents() -> dict[str, dict[str, Any]]:
    """Return the documents of each section by name, with their titles and headings."""
    contents: dict[str, dict[str, Any]] = json.loads((_DOCUMENTS / "contents.json").read_bytes())
    return contents


async def show_reference(request: web.Request) -> web.Response:
    """`GET /docs/reference`: show the API explorer. It loads nothing from outside the box."""
    # The policy also allows data: images, because Swagger UI's stylesheet embeds its icons.
    values = addresses(request)
    return public_page(request, "docs/reference.html", values, img_src="'self' data:")


def addresses(request: web.Request) -> dict[str, object]:
    """Return what `docs/frame.html` needs: the environment's path prefix and the live base URL."""
    return {"prefix": request[ENVIRONMENT].prefix, "base": _base(request)}


def _base(request: web.Request) -> str:
    """Return the live environment's base URL.

    This is `server.app_url` if the request used its host, otherwise the request's origin. The API
    explorer calls this URL, and browsers let a page call only its own origin.
    """
    base = request[ENVIRONMENT].settings.server.app_url
    if base and urlsplit(base).netloc == request.host:
        return base
    scheme = "https" if claims_https(request) else request.scheme
    return f"{scheme}://{request.host}"


def _body(name: str) -> Html:
    return Html((_DOCUMENTS / f"{name}.html").read_text("utf-8"))


@lru_cache(maxsize=32)
def _with_own_values(name: str, base: str, booking: ExampleBooking) -> Html:
    """Return a guide with this box's URL, and an example booking that this box accepts."""
    body = _body(name).replace("https://box.example", escape(base))
    for field, place in product(("table_id", "date", "slot", "guests"), _EXAMPLE_PLACES):
        usual, own = getattr(ExampleBooking(), field), getattr(booking, field)
        body = body.replace(place.format(usual), place.format(escape(str(own))))
    return Html(body)


def _find_example(reader: Reader) -> ExampleBooking:
    """Return an example booking, about a week ahead, that this box would accept.

    The example stays the same all day, so a partner who sends it twice receives a replay. If no
    table or slot can be booked, all values except the date are placeholders.
    """
    venue, closings, slots = get_venue(reader), list_closings(reader), list_slots(reader)
    today = find_tonight(reader)
    table = next((table for table in list_tables(reader) if table.bookable), None)
    for ahead in range(_DAYS_AHEAD, _DAYS_AHEAD + _DAYS_TRIED):
        day = today + timedelta(days=ahead)
        slot = next(iter(offered_slots(slots, day)), None)
        if table and slot and find_closure(venue, closings, day.isoformat()) is None:
            guests = max(table.capacity_min, min(_PARTY, table.capacity_max))
            return ExampleBooking(table.id, day.isoformat(), slot.start, guests, f"TRY-{day}")
    return ExampleBooking(date=(today + timedelta(days=_DAYS_AHEAD)).isoformat())


DOCS_ROUTES = (
    ("GET", "/openapi.json", show_document),
    ("GET", "/docs", show_page),
    ("GET", "/docs/reference", show_reference),
    ("GET", "/docs/", show_front),
    ("GET", "/docs/index", show_front),
    ("GET", "/docs/postman.json", send_postman),
    ("GET", "/docs/{name:.+}", show_page),
)
