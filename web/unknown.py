"""An address that leads nowhere, opened in a browser: a page with a way back, and no JSON."""

from aiohttp import web

from appliance.environment import Environment
from terminal_bridge.context import ENVIRONMENT
from web.guest.answer import dead_link
from web.middleware import Handler
from web.portal.answer import portal_page
from web.portal.context import BOX, SESSION
from web.portal.guard import find_living_session
from web.portal.private import is_private
from web.public_page import wants_page

_TEST = "/test"
# What programs ask is answered as it is documented, whatever they say they accept.
_OF_PROGRAMS = ("v1", "terminal", "static")


@web.middleware
async def lead_back(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Show people who came to an unknown address the page of their room that says so."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        is_asked = request.method in {"GET", "HEAD"} and wants_page(request)
        if not is_asked or _room_of(request) in _OF_PROGRAMS:
            raise
    box = request.app[BOX]
    is_test = request.path.startswith(f"{_TEST}/")
    request[ENVIRONMENT] = box.test if is_test else box.live
    if _room_of(request) == "portal" and _is_signed_in(request, box.live):
        return portal_page(request, "portal/unknown.html", {}, 404)
    return dead_link(request)


def _room_of(request: web.Request) -> str:
    """The first part of the path, in either environment."""
    return request.path.removeprefix(_TEST).strip("/").partition("/")[0]


def _is_signed_in(request: web.Request, house: Environment) -> bool:
    """Whether somebody of the house asks; the frame of the portal then bears their name."""
    session = find_living_session(request, house) if is_private(request) else None
    if session is None:
        return False
    request[SESSION] = session
    return True
