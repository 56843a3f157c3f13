"""What shows nothing or could not be done, in a browser: a page with a way back, and no JSON."""

from aiohttp import web
from yarl import URL

from appliance.environment import Environment
from appliance.errors import InternalError, Refusal, Unavailable
from appliance.house_errors import FormTooLarge
from terminal_bridge.context import ENVIRONMENT
from web.guest.answer import dead_link, language_of, page
from web.middleware import Handler, note_accident
from web.names.secure import SECURE
from web.portal.answer import portal_page, problem_page, refusal_text
from web.portal.context import BOX, SESSION
from web.portal.guard import find_living_session
from web.portal.navigation import page_above
from web.public_page import wants_page

_TEST = "/test"
_OF_PROGRAMS = ("v1", "terminal", "static")
_SAID = {kind.status: kind for kind in (FormTooLarge, Unavailable)}


@web.middleware
async def lead_back(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Show people a page of their room where there is none, and where the box had an accident.

    So also where it takes nothing just now, or was sent too much.
    """
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
    except (Refusal, web.HTTPException) as declined:
        kind = _SAID.get(declined.status)
        if kind is None or not _is_for_people(request):
            raise
        return _declined(request, kind())
    except Exception as error:
        if not _is_for_people(request):
            raise
        note_accident(request, error)
        return _declined(request, InternalError())


def _nowhere(request: web.Request) -> web.Response:
    if _is_in_the_portal(request):
        return portal_page(request, "portal/unknown.html", {}, 404)
    return dead_link(request)


def _declined(request: web.Request, refusal: Refusal) -> web.Response:
    if _is_in_the_portal(request):
        return problem_page(request, refusal)
    if isinstance(refusal, FormTooLarge):
        said = refusal_text(refusal, language_of(request))
        return page(request, "guest/too_large.html", {"said": said}, refusal.status)
    answer = page(request, "guest/accident.html", {}, refusal.status)
    answer.headers.update(refusal.headers)
    return answer


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
    try:
        session = (
            find_living_session(request, house) if request.app[SECURE].is_private(request) else None
        )
    except Unavailable:  # who it is cannot be told either
        session = None
    if session is None:
        return False
    request[SESSION] = session
    return True
