"""Pages for whoever comes by: the start page, the partners' guide, the sandbox."""

from aiohttp import web

from appliance.i18n import Language
from web.rendering import LANGUAGES, content_policy, render

_HEADERS = {
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def wants_page(request: web.Request) -> bool:
    """Whether a browser asks: programs that say nothing, or */*, get the JSON they expect."""
    return "text/html" in request.headers.get("Accept", "")


def public_page(
    request: web.Request,
    template: str,
    values: dict[str, object],
    language: Language | None = None,
    *,
    inline_pictures: bool = False,
    asks: str = "",
) -> web.Response:
    """A page that runs and loads nothing but this box's own files, in English by default.

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
