"""The portal's responses: pages, page parts, error messages, redirects and files."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from datetime import date, datetime
from functools import partial, wraps
from typing import ClassVar
from zoneinfo import ZoneInfo

from aiohttp import web

from appliance.core.errors import ApiError, NotFound, StaffRoleMissing, ValidationError
from appliance.core.i18n import Language, isolate, set_french
from appliance.core.i18n import mark as _
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT
from appliance.venue.rows import get_venue
from web.portal.forms import FORM, Form
from web.portal.navigation import SAFE, Handler, areas_for, nearest_page, same_page
from web.portal.session import SESSION
from web.rendering import LANGUAGES, page_headers, render

# The label of each form field, for errors shown above the page.
_LABELS: Mapping[str, str] = {
    "access": _("Rights"),
    "ca": _("Certificates of the authority (PEM)"),
    "capacity_max": _("Most guests"),
    "capacity_min": _("Fewest guests"),
    "customer_email": _("Email"),
    "customer_name": _("The name"),
    "customer_phone": _("Phone"),
    "endpoint": _("Endpoint"),
    "first": _("First day"),
    "from": _("From"),
    "guests": _("Guests"),
    "last": _("Last day"),
    "minimum_spend": _("Minimum spend"),
    "name": _("The name"),
    "notes": _("Notes"),
    "number": _("Number"),
    "pin": _("SHA-256 fingerprint"),
    "reason": _("Reason"),
    "recipient": _("Your own email address"),
    "role": _("Role"),
    "scope": _("Rights"),
    "slot": _("Time"),
    "to": _("To"),
    "type": _("Type"),
    "which": _("Which deliveries"),
}


HEADERS = page_headers(img_src="'self' data:")
_WRITE_SECONDS = 5.0  # a browser that does not read must not delay a shutdown


class Declined(Exception):
    """Rejects a form with a sentence in the person's language."""

    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, sentence: str, status: int = 400, field: str | None = None) -> None:
        """`sentence` is shown beside the form's `field`, or above the page if that is None."""
        super().__init__(sentence)
        self.sentence, self.status, self.field = sentence, status, field


REFUSED: web.RequestKey["ApiError | Declined"] = web.RequestKey("refused")
"""The error of this request, once it is known."""
_FIELDS: web.RequestKey[Collection[str]] = web.RequestKey("fields")
Act = Callable[[web.Request, Form], Awaitable[web.StreamResponse]]


def show_errors_on(page: Handler, *fields: str) -> Callable[[Act], Handler]:
    """Wrap a form's handler: after an error, show `page` with the entered values.

    The error is shown beside its field if that is one of `fields`, else above the page. The
    template variables are `wrong`, `problem` and `typed`.
    """

    def around(act: Act) -> Handler:
        @wraps(act)
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                return await act(request, request[FORM])
            except (ApiError, Declined) as refusal:
                if "HX-Request" in request.headers:  # htmx leaves the entered values in the page
                    raise
                request[REFUSED], request[_FIELDS] = refusal, fields
            return await page(request)

        return handle

    return around


def portal_page(
    request: web.Request, template: str, values: Mapping[str, object], status: int = 200
) -> web.Response:
    """Return a page, or a part of a page for htmx, in the person's language.

    If the request has an error (REFUSED), the page shows it and has its status and headers.
    """
    language, environment = language_of(request), request[ENVIRONMENT]
    person = request[SESSION].person
    frame: dict[str, object] = {
        "person": person,
        "base": f"{environment.prefix}/portal",
        "areas": areas_for(person, environment.name),
        "here": nearest_page(request),
        "again": same_page(request),
        # The URL of a POST may contain the note about an earlier action: do not show it again.
        "note": request.query.get("note") if request.method == "GET" else None,
        "wrong": None,
        "problem": None,
        "typed": request[FORM].typed() if REFUSED in request and FORM in request else {},
        "as_date": date.fromisoformat,
        "once_token": environment.database.tokens.new_link_secret(),
    }
    headers = {**HEADERS, "Content-Language": language.code}
    refusal = request.get(REFUSED)
    if refusal is not None:
        sentence, status = refusal_text(refusal, language), refusal.status
        if refusal.field in request.get(_FIELDS, ()):
            frame["wrong"] = (refusal.field, rule_text(refusal, language) or sentence)
        else:
            frame["problem"] = sentence
        headers |= refusal.headers
    return web.Response(
        text=render(request, template, language, {**frame, **values}),
        status=status,
        content_type="text/html",
        charset="utf-8",
        headers=headers,
    )


def problem_page(request: web.Request, refusal: ApiError | Declined) -> web.Response:
    """Return the error page, or the error as a page part for htmx."""
    request[REFUSED] = refusal
    language, is_read = language_of(request), request.method in SAFE
    part = "HX-Request" in request.headers
    if is_read and not part and refusal.status == NotFound.status:
        return portal_page(request, "portal/unknown.html", {})
    values = {
        "problem": (part and rule_text(refusal, language)) or refusal_text(refusal, language),
        "field": refusal.field,
        "looked_at": is_read,
    }
    answer = portal_page(request, f"portal/problem{'_part' if part else ''}.html", values)
    if part:  # replace the page's error message, not the target of the request
        answer.headers["HX-Retarget"] = "#problem"
        answer.headers["HX-Reswap"] = "innerHTML"
    return answer


def refusal_text(refusal: ApiError | Declined, language: Language) -> str:
    """Return the error's sentence in `language`; for a field, with its label."""
    if isinstance(refusal, Declined):
        return refusal.sentence
    rule, label = _fill_rule(refusal, language), _LABELS.get(refusal.field or "")
    if rule is not None and label is not None:
        return language.gettext("%(field)s: %(rule)s", field=language.gettext(label), rule=rule)
    if rule is not None:
        return rule[:1].upper() + rule[1:]
    details = refusal.details
    if isinstance(refusal, StaffRoleMissing):
        details = {"role": language.gettext(str(details["role"]).capitalize())}
    return _fill(refusal.french, refusal.english, details, language)


def rule_text(refusal: ApiError | Declined, language: Language) -> str | None:
    """Return the rule that the field breaks, to show beside it; None for other errors."""
    rule = _fill_rule(refusal, language)
    return None if rule is None else rule[:1].upper() + rule[1:]


def _fill_rule(refusal: ApiError | Declined, language: Language) -> str | None:
    rule = refusal.rule if isinstance(refusal, ValidationError) else None
    return None if rule is None else _fill(rule.french, rule.english, rule.blanks, language)


def _fill(french: str, english: str, blanks: Mapping[str, object], language: Language) -> str:
    """Return the sentence in `language`, with `blanks` in its placeholders.

    Values that the venue entered are not translated.
    """
    if language.code == "fr":
        rule = blanks.get("rule_fr")
        filled = blanks if rule is None else {**blanks, "rule_fr": set_french(str(rule))}
        return set_french(french).format(**filled) if filled else set_french(french)
    if language.code == "en":
        return english.format(**blanks) if blanks else english
    filled = {name: _in_arabic(name, value, language) for name, value in blanks.items()}
    sentence = language.words.gettext(english)
    return sentence.format(**filled) if filled else sentence


def _in_arabic(name: str, value: object, language: Language) -> object:
    """Return a value for an Arabic sentence: rules are translated, other text is isolated."""
    if name == "rule":
        return language.words.gettext(str(value))
    return isolate(value) if isinstance(value, str) else value


def see_other(request: web.Request, path: str, note: str | None = None) -> web.Response:
    """Redirect to `path` (below `/portal`, with a leading slash) of this environment.

    `note` is the name of a sentence in note.html that the page shows.
    """
    target = f"{request[ENVIRONMENT].prefix}/portal{path}"
    if note is not None:
        target += ("&" if "?" in target else "?") + f"note={note}"
    if "HX-Request" in request.headers:
        return web.Response(status=204, headers={**HEADERS, "HX-Redirect": target})
    return web.Response(status=303, headers={**HEADERS, "Location": target})


def language_of(request: web.Request) -> Language:
    """Return the language of `?lang=`, else the signed-in person's, else the browser's."""
    languages = request.config_dict[LANGUAGES]
    if "lang" in request.query or SESSION not in request:
        return languages.of(request)
    return languages.get(request[SESSION].person.language)


def find_zone(reader: Reader) -> ZoneInfo:
    """Return the venue's time zone."""
    return reader.zones.zone(get_venue(reader).time_zone)


def moment(
    at: int | None, now: int, zone: ZoneInfo, language: Language, *, seconds: bool = False
) -> str:
    """Return `sam. 21 nov. 19:05` in venue time for `at` (ms since 1970); "" for None.

    The year is added unless it is that of `now`.
    """
    if at is None:
        return ""
    then, today = (datetime.fromtimestamp(each / 1000, zone) for each in (at, now))
    day = language.short_date(then.date(), year=then.year != today.year)
    return f"{day} {then:{'%H:%M:%S' if seconds else '%H:%M'}}"


def moment_formatter(request: web.Request) -> Callable[..., str]:
    """Return `moment` with the venue's time zone and the language of this request."""
    database = request[ENVIRONMENT].database
    now, zone = database.peek(lambda reader: (reader.now, find_zone(reader)))
    return partial(moment, now=now, zone=zone, language=language_of(request))


def download_headers(content_type: str, name: str) -> dict[str, str]:
    """Return the headers of a file that the browser saves as `name`."""
    disposition = f'attachment; filename="{name}"'
    return {**HEADERS, "Content-Type": content_type, "Content-Disposition": disposition}


async def send_file(
    request: web.Request, chunks: AsyncIterator[bytes], content_type: str, name: str
) -> web.StreamResponse:
    """Stream a file to download. TimeoutError if the browser does not read for 5 s."""
    response = web.StreamResponse(headers=download_headers(content_type, name))
    await response.prepare(request)
    async for chunk in chunks:
        async with asyncio.timeout(_WRITE_SECONDS):
            await response.write(chunk)
    await response.write_eof()
    return response
