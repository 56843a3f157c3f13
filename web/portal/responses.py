"""Build the portal's responses: pages, parts of pages for htmx, errors, redirects and files."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import ClassVar, cast

from aiohttp import web

from appliance.core.errors import ApiError, NotFound, StaffRoleMissing, ValidationError, fill
from appliance.core.i18n import Language, isolate
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT
from appliance.http.security_headers import page_headers
from appliance.reservations.rows import count_requests
from appliance.venue.model import find_tonight, find_zone
from web.portal.cookies import SESSION
from web.portal.forms import FORM
from web.portal.navigation import SAFE, areas_for, nearest_page, same_page
from web.rendering import LANGUAGES, render

HEADERS = page_headers(img_src="'self' data:")


class Declined(Exception):
    """Raised if a form is rejected. The reason is in the visitor's language."""

    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, sentence: str, status: int = 400, field: str | None = None) -> None:
        """`sentence` is shown beside `field`, or at the top of the page if `field` is None."""
        super().__init__(sentence)
        self.sentence, self.status, self.field = sentence, status, field


REFUSED: web.RequestKey["ApiError | Declined"] = web.RequestKey("refused")
"""The error that the response shows. Set only if the request has failed."""


def portal_page(
    request: web.Request, template: str, values: Mapping[str, object], status: int = 200
) -> web.Response:
    """Return a page, or a partial page for htmx, in the staff member's language."""
    return render_page(request, template, {**page_values(request), **values}, status)


def page_values(request: web.Request) -> dict[str, object]:
    """Return the values that all portal pages use."""
    language, environment = language_of(request), request[ENVIRONMENT]
    person = request[SESSION].person
    values: dict[str, object] = {
        "person": person,
        "base": f"{environment.prefix}/portal",
        "areas": areas_for(person, environment.name),
        "open_requests": environment.database.peek(_count_open) if person.may("host") else 0,
        "here": nearest_page(request),
        "again": same_page(request),
        # The URL of a POST may still have the note about an earlier action. Do not show it again.
        "note": request.query.get("note") if request.method == "GET" else None,
        "refusal": request.get(REFUSED),
        "wrong": {},
        "problem": None,
        "typed": request[FORM].typed() if REFUSED in request and FORM in request else {},
        "as_date": date.fromisoformat,
        "in_words": moment_formatter(request),
    }
    refusal = request.get(REFUSED)
    if refusal is not None:
        values["problem"] = refusal_text(refusal, language)
        values["wrong"] = faults_by_field(
            (fault.field, refusal_text(fault, language)) for fault in faults_of(refusal)
        )
    return values


def _count_open(reader: Reader) -> int:
    return count_requests(reader, find_tonight(reader).isoformat())


def faults_of(refusal: ApiError | Declined) -> Sequence[ApiError | Declined]:
    """Return everything that was wrong with the request."""
    return (refusal, *(refusal.others if isinstance(refusal, ApiError) else ()))


def faults_by_field(said: Iterable[tuple[str | None, str]]) -> dict[str, str]:
    """Return the first sentence about each field, in the same order."""
    wrong: dict[str, str] = {}
    for field, sentence in said:
        if field is not None:
            wrong.setdefault(field, sentence)
    return wrong


def render_page(
    request: web.Request, template: str, values: dict[str, object], status: int = 200
) -> web.Response:
    """Return the template filled with `values`, which must include those from `page_values`.

    If the request has failed (REFUSED), the page has the error's status and headers. Each fault is
    shown beside its field (template variable `wrong`) if the page has this field, otherwise at the
    top of the page (`problem`).
    """
    language, refusal = language_of(request), request.get(REFUSED)
    headers = {**HEADERS, "Content-Language": language.code}
    if refusal is None:
        text = render(request, template, language, values)
    else:
        status, headers = refusal.status, headers | refusal.headers
        wrong = cast("dict[str, str]", values["wrong"])
        text = render(request, template, language, {**values, "problem": None})
        at_field = {name for name in wrong if f'id="refused-{name}"' in text}
        if not wrong or at_field != wrong.keys():
            others = [said for name, said in wrong.items() if name not in at_field]
            values["problem"] = " ".join(others) or values["problem"]
            values["wrong"] = {name: wrong[name] for name in wrong if name in at_field}
            text = render(request, template, language, values)
    return web.Response(
        text=text, status=status, content_type="text/html", charset="utf-8", headers=headers
    )


def problem_page(request: web.Request, refusal: ApiError | Declined) -> web.Response:
    """Return a page that shows the error, or a partial page for htmx."""
    request[REFUSED] = refusal
    is_read = request.method in SAFE
    part = "HX-Request" in request.headers
    if is_read and not part and refusal.status == NotFound.status:
        return portal_page(request, "portal/unknown.html", {})
    values = {"looked_at": is_read}
    response = portal_page(request, f"portal/problem{'_part' if part else ''}.html", values)
    if part:  # replace the page's error message instead of the element that htmx would update
        response.headers["HX-Retarget"] = "#problem"
        response.headers["HX-Reswap"] = "innerHTML"
    return response


def refusal_text(refusal: ApiError | Declined, language: Language) -> str:
    """Return the error message in `language`. For an invalid field, this is the rule it breaks."""
    if isinstance(refusal, Declined):
        return refusal.sentence
    text: str = refusal.text
    details: Mapping[str, object] = refusal.details
    if isinstance(refusal, ValidationError) and refusal.rule is not None:
        text, details = refusal.rule.text, refusal.rule.blanks
    if isinstance(refusal, StaffRoleMissing):
        details = {"role": language.gettext(str(details["role"]).capitalize())}
    if language.direction == "rtl":  # entered text may run from left to right
        details = {
            name: isolate(value) if isinstance(value, str) else value
            for name, value in details.items()
        }
    said = fill(text, details, language.gettext)
    return said[:1].upper() + said[1:]


def see_other(request: web.Request, path: str, note: str | None = None) -> web.Response:
    """Redirect to a page of the portal in the request's environment.

    `path` is relative to `/portal`, with a leading slash. `note` is the key of a
    message in note.html, which the page then shows.
    """
    target = f"{request[ENVIRONMENT].prefix}/portal{path}"
    if note is not None:
        target += ("&" if "?" in target else "?") + f"note={note}"
    if "HX-Request" in request.headers:
        return web.Response(status=204, headers={**HEADERS, "HX-Redirect": target})
    return web.Response(status=303, headers={**HEADERS, "Location": target})


def language_of(request: web.Request) -> Language:
    """Return the language in `?lang=`, or else the staff member's, or else the browser's."""
    languages = request.config_dict[LANGUAGES]
    if "lang" in request.query or SESSION not in request:
        return languages.of(request)
    return languages.get(request[SESSION].person.language)


def moment_formatter(request: web.Request) -> Callable[..., str]:
    """Return a function that formats a time (ms since 1970) as `sam. 21 nov. 19:05`, in venue time.

    The year is included unless it is the current year. For None, the function returns "".
    """
    database, language = request[ENVIRONMENT].database, language_of(request)
    now, zone = database.peek(lambda reader: (reader.now, find_zone(reader)))

    def moment(at: int | None, *, seconds: bool = False) -> str:
        if at is None:
            return ""
        then, today = (datetime.fromtimestamp(each / 1000, zone) for each in (at, now))
        day = language.short_date(then.date(), year=then.year != today.year)
        return f"{day} {then:{'%H:%M:%S' if seconds else '%H:%M'}}"

    return moment


def clock_formatter(request: web.Request) -> Callable[[int], str]:
    """Return a function that formats a time (ms since 1970) as `22:40`, in venue time."""
    zone = request[ENVIRONMENT].database.peek(find_zone)
    return lambda at: f"{datetime.fromtimestamp(at / 1000, zone):%H:%M}"


def download_headers(content_type: str, name: str) -> dict[str, str]:
    """Return response headers that make the browser save the file as `name`."""
    disposition = f'attachment; filename="{name}"'
    return {**HEADERS, "Content-Type": content_type, "Content-Disposition": disposition}


async def send_file(
    request: web.Request, chunks: AsyncIterator[bytes], content_type: str, name: str
) -> web.StreamResponse:
    """Stream a file download."""
    response = web.StreamResponse(headers=download_headers(content_type, name))
    await response.prepare(request)
    async for chunk in chunks:
        await response.write(chunk)
    await response.write_eof()
    return response
