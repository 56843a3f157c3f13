"""HTML pages that browsers receive for errors. API clients receive JSON instead."""

import re
from urllib.parse import quote

from aiohttp import web

from appliance.core.errors import (
    ApiError,
    FormTooLarge,
    HeadersTooLarge,
    InternalError,
    Unavailable,
)
from appliance.http.request import ENVIRONMENT, refuse
from appliance.http.security_headers import page_headers
from web.guest.responses import dead_link, language_of, page
from web.middleware import SECURE, note_exception
from web.portal.cookies import BOX, SESSION
from web.portal.guard import find_living_session
from web.portal.navigation import page_above
from web.portal.responses import portal_page, problem_page, refusal_text
from web.rendering import LANGUAGES, TEMPLATES

_PORTAL = ("/portal/", "/test/portal/")
_ACCEPT = re.compile(rb"^accept:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_COOKIE = re.compile(rb"^cookie:", re.IGNORECASE | re.MULTILINE)
_SHOWN = {kind.status: kind for kind in (FormTooLarge, Unavailable)}


def error_page(request: web.Request, error: Exception) -> web.StreamResponse | None:
    """Return the error page for a 404, 413, 500 or 503.

    If a URL that only accepts forms was opened with GET, redirect to the nearest page above it. For
    other errors, return None, and the caller sends the documented response. Logs unexpected
    exceptions.
    """
    is_read = request.method in {"GET", "HEAD"}
    if isinstance(error, web.HTTPNotFound):
        return _not_found(request) if is_read else None
    if isinstance(error, web.HTTPMethodNotAllowed):
        above = page_above(request) if is_read else ""
        if not above:
            return None
        return web.Response(status=303, headers={"Location": quote(above, safe="/:@")})
    if isinstance(error, (ApiError, web.HTTPException)):
        kind = _SHOWN.get(error.status)
        return kind and _failed(request, kind())
    note_exception(request, error)
    return _failed(request, InternalError())


def refuse_unread(app: web.Application, refusal: ApiError, head: bytes) -> web.Response:
    """Return the answer to a request that could not be read.

    It is a page in all languages if the request's first bytes, `head`, are those of a browser. Some
    browsers send their cookies before the Accept header, which then was not read.
    """
    accept = _ACCEPT.search(head)
    if not (b"text/html" in accept[1] if accept else _COOKIE.search(head)):
        return refuse(refusal)
    text = (
        app[TEMPLATES]
        .get_template("unread.html")
        .render(is_too_large=isinstance(refusal, HeadersTooLarge), languages=app[LANGUAGES].all())
    )
    headers = page_headers(style_src="'unsafe-inline'")  # the page contains nothing of the request
    status = refusal.status
    return web.Response(text=text, status=status, content_type="text/html", headers=headers)


def _not_found(request: web.Request) -> web.Response:
    if _is_in_the_portal(request):
        return portal_page(request, "portal/unknown.html", {}, 404)
    return dead_link(request)


def _failed(request: web.Request, refusal: ApiError) -> web.Response:
    if _is_in_the_portal(request):
        return problem_page(request, refusal)
    if isinstance(refusal, FormTooLarge):
        said = refusal_text(refusal, language_of(request))
        return page(request, "guest/too_large.html", {"said": said}, refusal.status)
    answer = page(request, "guest/accident.html", {}, refusal.status)
    answer.headers.update(refusal.headers)
    return answer


def _is_in_the_portal(request: web.Request) -> bool:
    """Return whether a signed-in user requested a portal page.

    If so, also set SESSION, because the portal's frame shows the user's name.
    """
    box = request.app[BOX]
    request[ENVIRONMENT] = box.test if request.path.lstrip("/").startswith("test/") else box.live
    if not f"{request.path}/".startswith(_PORTAL) or not request.app[SECURE].is_private(request):
        return False
    try:
        session = find_living_session(request, box.live)
    except Unavailable:  # the session cannot be read
        return False
    if session is not None:
        request[SESSION] = session
    return session is not None
