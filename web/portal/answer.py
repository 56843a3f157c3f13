"""The portal's answers: whole pages in their frame, parts of pages, and refusals in words."""

from aiohttp import web

from appliance.errors import NotFound, Refusal
from appliance.typesetting import set_french
from terminal_bridge.context import ENVIRONMENT
from web.languages import Language
from web.portal.context import SESSION
from web.portal.navigation import areas_for
from web.portal.nearest import nearest_page, same_page
from web.portal.notes import note_text
from web.rendering import LANGUAGES, render

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(self)",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
}


def portal_page(
    request: web.Request, template: str, values: dict[str, object], status: int = 200
) -> web.Response:
    """A page, or a part of one for htmx, in the person's language."""
    language = language_of(request)
    session, environment = request[SESSION], request[ENVIRONMENT]
    frame: dict[str, object] = {
        "person": session.person,
        "base": f"{environment.prefix}/portal",
        "areas": areas_for(session.person, environment.name),
        "here": nearest_page(request),
        "again": same_page(request),
        # A form is sent to the address it stood at, and what was done before is no answer to it.
        "note": note_text(request.query.get("note") if request.method == "GET" else None, language),
    }
    return web.Response(
        text=render(request, template, language, {**frame, **values}),
        status=status,
        content_type="text/html",
        charset="utf-8",
        headers={**HEADERS, "Content-Language": language.code},
    )


def problem_page(request: web.Request, refusal: Refusal) -> web.Response:
    """What was declined, in words; as a part of the page when htmx asked."""
    sentence = _rule_text(refusal, language_of(request))
    part = "HX-Request" in request.headers
    looked_at = request.method in {"GET", "HEAD"}
    if looked_at and not part and refusal.status == NotFound.status:
        return portal_page(request, "portal/unknown.html", {}, refusal.status)
    template = "portal/problem_part.html" if part else "portal/problem.html"
    values: dict[str, object] = {
        "problem": sentence,
        "field": refusal.field,
        "looked_at": looked_at,
    }
    answer = portal_page(request, template, values, refusal.status)
    answer.headers.update(refusal.headers)
    if part:  # wherever the request wanted to put its answer, a problem has one place
        answer.headers["HX-Retarget"] = "#problem"
        answer.headers["HX-Reswap"] = "innerHTML"
    return answer


def _rule_text(refusal: Refusal, language: Language) -> str:
    """As `refusal_text`; of a field, what it must be: people do not know it by its name."""
    rule = refusal.details.get({"fr": "rule_fr", "en": "rule"}.get(language.code, ""))
    if not isinstance(rule, str):
        return refusal_text(refusal, language)
    said = rule.removeprefix(f"{refusal.field}").lstrip(" :")
    said = said[:1].upper() + said[1:]
    return set_french(said) if language.code == "fr" else said


def refusal_text(refusal: Refusal, language: Language) -> str:
    """The sentence of a refusal in `language`."""
    if language.code == "fr":
        return set_french(refusal.error)
    if language.code == "en":
        return refusal.error_en
    return language.words.gettext(refusal.english).format(**refusal.details)


def see_other(request: web.Request, path: str, note: str | None = None) -> web.Response:
    """Go on to `path` (below `/portal`, with a leading slash) of this environment.

    `note` is the name of a sentence of notes.py that is shown there once.
    """
    target = f"{request[ENVIRONMENT].prefix}/portal{path}"
    if note is not None:
        target += ("&" if "?" in target else "?") + f"note={note}"
    if "HX-Request" in request.headers:
        return web.Response(status=204, headers={**HEADERS, "HX-Redirect": target})
    return web.Response(status=303, headers={**HEADERS, "Location": target})


def language_of(request: web.Request) -> Language:
    """What `?lang=` says, else the signed-in person's language, else the browser's."""
    languages = request.config_dict[LANGUAGES]
    if "lang" in request.query or SESSION not in request:
        return languages.of(request)
    return languages.get(request[SESSION].person.language)
