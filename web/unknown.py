"""An address that shows nothing, opened in a browser: a page with a way back, and no JSON."""

from aiohttp import web
from yarl import URL

from appliance.environment import Environment
from appliance.errors import InternalError, Refusal
from terminal_bridge.context import ENVIRONMENT
from web.guest.answer import dead_link, page
from web.middleware import Handler, note_accident
from web.portal.answer import portal_page, problem_page
from web.portal.context import BOX, SESSION
from web.portal.guard import find_living_session
from web.portal.nearest import page_above
from web.portal.private import is_private
from web.public_page import wants_page

_TEST = "/test"
_OF_PROGRAMS = ("v1", "terminal", "static")


@web.middleware
async def lead_back(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Show people a page of their room where there is none, and where the box had an accident."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        if not _is_looked_at(request):
            raise
        return _nowhere(request)
    except web.HTTPMethodNotAllowed:  # the address of a form, opened again
        above = page_above(request) if _is_looked_at(request) else ""
        if not above:
            raise
        return web.Response(status=303, headers={"Location": str(URL.build(path=above))})
    except (Refusal, web.HTTPException):
        raise
    except Exception as error:
        if not _is_for_people(request):
            raise
        note_accident(request, error)
        return _accident(request)


def _nowhere(request: web.Request) -> web.Response:
    if _is_in_the_portal(request):
        return portal_page(request, "portal/unknown.html", {}, 404)
    return dead_link(request)


def _accident(request: web.Request) -> web.Response:
    if _is_in_the_portal(request):
        return problem_page(request, InternalError())
    return page(request, "guest/accident.html", {}, InternalError.status)


def _is_for_people(request: web.Request) -> bool:
    # What programs ask is answered as it is documented, whatever they say they accept.
    return wants_page(request) and _room_of(request) not in _OF_PROGRAMS


def _is_looked_at(request: web.Request) -> bool:
    return request.method in {"GET", "HEAD"} and _is_for_people(request)


def _is_in_the_portal(request: web.Request) -> bool:
    """Whether a page of the portal was asked for by somebody who is signed in."""
    box = request.app[BOX]
    is_test = request.path.startswith(f"{_TEST}/")
    request[ENVIRONMENT] = box.test if is_test else box.live
    return _room_of(request) == "portal" and _is_signed_in(request, box.live)


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
