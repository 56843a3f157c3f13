"""HTML error pages for browsers, with a link back; API clients receive JSON."""

from aiohttp import web
from yarl import URL

from appliance.core.errors import ApiError, FormTooLarge, InternalError, Unavailable
from appliance.http.request import ENVIRONMENT, Handler, wants_page
from web.guest.responses import dead_link, language_of, page
from web.https_policy import SECURE
from web.middleware import note_exception
from web.portal.guard import find_living_session
from web.portal.navigation import page_above
from web.portal.responses import portal_page, problem_page, refusal_text
from web.portal.session import BOX, SESSION

_TEST = "/test"
_OF_PROGRAMS = ("v1", "terminal", "static")
_SAID = {kind.status: kind for kind in (FormTooLarge, Unavailable)}


@web.middleware
async def lead_back(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer browsers with an HTML page on 404, 405, 413 and 5xx.

    API clients receive the documented JSON, whatever their Accept header says.
    """
    if not wants_page(request) or _section(request) in _OF_PROGRAMS:
        return await handler(request)
    is_read = request.method in {"GET", "HEAD"}
    try:
        return await handler(request)
    except web.HTTPNotFound:
        if not is_read:
            raise
        return _not_found(request)
    except web.HTTPMethodNotAllowed:  # a form's address, opened again
        above = page_above(request) if is_read else ""
        if not above:
            raise
        return web.Response(status=303, headers={"Location": str(URL.build(path=above))})
    except (ApiError, web.HTTPException) as declined:
        if declined.status not in _SAID:
            raise
        return _declined(request, _SAID[declined.status]())
    except Exception as error:  # noqa: BLE001 - any exception is answered and logged
        note_exception(request, error)
        return _declined(request, InternalError())


def _not_found(request: web.Request) -> web.Response:
    if _is_in_the_portal(request):
        return portal_page(request, "portal/unknown.html", {}, 404)
    return dead_link(request)


def _declined(request: web.Request, refusal: ApiError) -> web.Response:
    if _is_in_the_portal(request):
        return problem_page(request, refusal)
    if isinstance(refusal, FormTooLarge):
        said = refusal_text(refusal, language_of(request))
        return page(request, "guest/too_large.html", {"said": said}, refusal.status)
    answer = page(request, "guest/accident.html", {}, refusal.status)
    answer.headers.update(refusal.headers)
    return answer


def _section(request: web.Request) -> str:
    """Return the first part of the path, without the environment's prefix."""
    return request.path.removeprefix(_TEST).strip("/").partition("/")[0]


def _is_in_the_portal(request: web.Request) -> bool:
    """Return whether a signed-in person requested a page of the portal.

    Sets SESSION: the portal's frame shows the person's name.
    """
    box = request.app[BOX]
    request[ENVIRONMENT] = box.test if request.path.startswith(f"{_TEST}/") else box.live
    if _section(request) != "portal" or not request.app[SECURE].is_private(request):
        return False
    try:
        session = find_living_session(request, box.live)
    except Unavailable:  # the session cannot be read
        return False
    if session is not None:
        request[SESSION] = session
    return session is not None
