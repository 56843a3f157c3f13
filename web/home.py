"""The start page: what answers at this address, and where to go from here."""

from aiohttp import web

from appliance.errors import NotFound
from appliance.store.venue import get_venue
from terminal_bridge.context import ENVIRONMENT
from web.public_page import public_page, wants_page
from web.rendering import LANGUAGES


async def show_home(request: web.Request) -> web.Response:
    """`GET /`: a page for browsers; programs get the 404 of any unknown path."""
    if not wants_page(request):
        raise NotFound
    venue = await request[ENVIRONMENT].database.read(get_venue)
    # Only what this box really answers is offered.
    known = {resource.canonical for resource in request.app.router.resources()}
    if not request[ENVIRONMENT].settings.booking.enabled:
        known.discard("/book")
    values: dict[str, object] = {"venue": venue.name, "known": known}
    return public_page(request, "home.html", values, request.config_dict[LANGUAGES].of(request))


HOME_ROUTES = (("GET", "/", show_home),)
