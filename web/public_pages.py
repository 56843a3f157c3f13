"""Public pages: start page, guide for partners, sandbox."""

from aiohttp import web

from appliance.core.errors import NotFound
from appliance.core.i18n import Language
from appliance.http.request import ENVIRONMENT, wants_page
from appliance.venue.rows import get_venue
from web.rendering import LANGUAGES, content_policy, render

_HEADERS = {
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def public_page(
    request: web.Request,
    template: str,
    values: dict[str, object],
    language: Language | None = None,
    *,
    inline_pictures: bool = False,
    asks: str = "",
) -> web.Response:
    """Return a page that loads only this box's own files, in English by default.

    `asks` is one more origin that its script may call.
    """
    language = language or request.config_dict[LANGUAGES].get("en")
    policy = content_policy(
        default_src="'none'",
        script_src="'self'",
        style_src="'self'",
        img_src="'self' data:" if inline_pictures else "'self'",
        connect_src=f"'self' {asks}".strip(),
        form_action="'none'",
    )
    return web.Response(
        text=render(request, template, language, values),
        content_type="text/html",
        charset="utf-8",
        headers={
            **_HEADERS,
            "Content-Security-Policy": policy,
            "Content-Language": language.code,
            "Vary": "Accept, Accept-Language",
        },
    )


async def show_home(request: web.Request) -> web.Response:
    """`GET /`: the start page for browsers; API clients get the 404 of an unknown path."""
    if not wants_page(request):
        raise NotFound
    venue = await request[ENVIRONMENT].database.read(get_venue)
    # Only routes that this box serves are offered.
    known = {resource.canonical for resource in request.app.router.resources()}
    if not request[ENVIRONMENT].settings.booking.enabled:
        known.discard("/book")
    values: dict[str, object] = {"venue": venue.name, "known": known}
    return public_page(request, "home.html", values, request.config_dict[LANGUAGES].of(request))


HOME_ROUTES = (("GET", "/", show_home),)
