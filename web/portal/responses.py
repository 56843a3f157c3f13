"""The portal's answers: pages, page parts, error texts, flash messages."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from datetime import date, datetime
from functools import partial, wraps
from typing import ClassVar
from zoneinfo import ZoneInfo

from aiohttp import web

from appliance.core.errors import ApiError, NotFound, Rule, StaffRoleMissing, ValidationError
from appliance.core.i18n import Language, isolate, set_french
from appliance.core.i18n import mark as _
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT
from appliance.venue.rows import get_venue
from web.portal.forms import FORM, Form
from web.portal.navigation import SAFE, Handler, areas_for, nearest_page, same_page
from web.portal.session import SESSION
from web.rendering import LANGUAGES, page_headers, render

_NAMES: Mapping[str, str] = {
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


def field_name(field: str | None, language: Language) -> str | None:
    """Return the field's label on the page; None for a field that is not shown."""
    name = _NAMES.get(field or "")
    return None if name is None else language.gettext(name)


HEADERS = page_headers(img_src="'self' data:")
_PATIENCE_SECONDS = 5.0  # for a browser that does not read; limits the delay of a shutdown
_ROLES = {"owner": "Owner", "manager": "Manager", "host": "Host", "door": "Door"}


class Declined(Exception):
    """Rejects a form with a sentence in the person's language; `field` is the invalid field."""

    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, sentence: str, status: int = 400, field: str | None = None) -> None:
        """`sentence` is shown beside the field, or above the page without such a field."""
        super().__init__(sentence)
        self.sentence, self.status, self.field = sentence, status, field


REFUSED: web.RequestKey["ApiError | Declined"] = web.RequestKey("refused")
_FIELDS: web.RequestKey[Collection[str]] = web.RequestKey("fields")
Act = Callable[[web.Request, Form], Awaitable[web.StreamResponse]]


def refused_on(page: Handler, *fields: str) -> Callable[[Act], Handler]:
    """Wrap a form's handler: on an error, show `page` again with the entered values.

    The error is shown beside its field if that is one of `fields`, else above the page. The
    template reads `wrong`, `problem` and `typed`.
    """

    def around(act: Act) -> Handler:
        @wraps(act)
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                return await act(request, request[FORM])
            except (ApiError, Declined) as refusal:
                if "HX-Request" in request.headers:  # the script keeps the entered values
                    raise
                request[REFUSED], request[_FIELDS] = refusal, fields
            return await page(request)

        return handle

    return around


def portal_page(
    request: web.Request, template: str, values: dict[str, object], status: int = 200
) -> web.Response:
    """Return a page, or a part of one for htmx, in the person's language."""
    language = language_of(request)
    session, environment = request[SESSION], request[ENVIRONMENT]
    frame: dict[str, object] = {
        "person": session.person,
        "base": f"{environment.prefix}/portal",
        "areas": areas_for(session.person, environment.name),
        "here": nearest_page(request),
        "again": same_page(request),
        # A form posts to its own URL, without the note about the previous action.
        "note": request.query.get("note") if request.method == "GET" else None,
        "wrong": None,
        "problem": None,
        "typed": request[FORM].typed() if REFUSED in request else {},
        "as_date": date.fromisoformat,
        "once_token": environment.database.tokens.new_link_secret(),
    }
    headers = {**HEADERS, "Content-Language": language.code}
    refusal = request.get(REFUSED)
    if refusal is not None:
        frame |= _say_in_place(refusal, language, request.get(_FIELDS, ()))
        status = refusal.status
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
    language = language_of(request)
    part = "HX-Request" in request.headers
    sentence = (part and rule_text(refusal, language)) or refusal_text(refusal, language)
    looked_at = request.method in SAFE
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
    if part:  # an error always goes to the same element
        answer.headers["HX-Retarget"] = "#problem"
        answer.headers["HX-Reswap"] = "innerHTML"
    return answer


def _say_in_place(
    refusal: ApiError | Declined, language: Language, fields: Collection[str]
) -> dict[str, object]:
    if refusal.field not in fields:
        return {"problem": refusal_text(refusal, language)}
    said = rule_text(refusal, language) or refusal_text(refusal, language)
    return {"wrong": (refusal.field, said)}


def refusal_text(refusal: ApiError | Declined, language: Language) -> str:
    """Return the error's sentence in `language`; for a field, with its label."""
    if isinstance(refusal, Declined):
        return refusal.sentence
    rule, name = _rule_said(refusal, language), field_name(refusal.field, language)
    if rule is not None and name is not None:
        return language.gettext("%(field)s: %(rule)s", field=name, rule=rule)
    if rule is not None:
        return _with_a_capital(rule)
    details = refusal.details
    if isinstance(refusal, StaffRoleMissing):
        role = str(details["role"])
        details = {"role": language.gettext(_ROLES.get(role, role))}
    return _fill(refusal.french, refusal.english, details, language)


def rule_text(refusal: ApiError | Declined, language: Language) -> str | None:
    """Return what an invalid field must be, to show beside it; None for other errors."""
    rule = _rule_said(refusal, language)
    return None if rule is None else _with_a_capital(rule)


def _rule_said(refusal: ApiError | Declined, language: Language) -> str | None:
    if not isinstance(refusal, ValidationError) or "rule" not in refusal.details:
        return None
    rule = refusal.rule or _bare_rule(refusal)
    return _fill(rule.french, rule.english, rule.blanks, language)


def _with_a_capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _bare_rule(refusal: ValidationError) -> Rule:
    def bare(name: str) -> str:
        return str(refusal.details[name]).removeprefix(f"{refusal.field}").lstrip(" :")

    return Rule(bare("rule_fr"), bare("rule"))


def _fill(french: str, english: str, blanks: Mapping[str, object], language: Language) -> str:
    """Return the sentence in `language`. Values come from the venue and stay as entered."""
    if language.code == "fr":
        inner = blanks.get("rule_fr")  # a nested sentence of ours
        filled = blanks if inner is None else {**blanks, "rule_fr": set_french(str(inner))}
        return set_french(french).format(**filled) if filled else set_french(french)
    if language.code == "en":
        return english.format(**blanks) if blanks else english
    said = {name: _apart(name, value, language) for name, value in blanks.items()}
    sentence = language.words.gettext(english)
    return sentence.format(**said) if said else sentence


def _apart(name: str, value: object, language: Language) -> object:
    """Return a value for an Arabic sentence: rules are translated, other text is isolated."""
    if name == "rule":
        return language.words.gettext(str(value))
    return isolate(value) if isinstance(value, str) else value


def see_other(request: web.Request, path: str, note: str | None = None) -> web.Response:
    """Redirect to `path` (below `/portal`, with a leading slash) of this environment.

    `note` names a sentence of note.html that the page shows once.
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
    """Return `sam. 21 nov. 19:05` in venue time, with the year if not this one; "" for None."""
    if at is None:
        return ""
    then, today = (datetime.fromtimestamp(each / 1000, zone) for each in (at, now))
    date = language.short_date(then.date(), year=then.year != today.year)
    return f"{date} {then:{'%H:%M:%S' if seconds else '%H:%M'}}"


def instants_of(request: web.Request) -> Callable[..., str]:
    """Return `moment` for the venue's time zone and this request's language."""
    database = request[ENVIRONMENT].database
    now, zone = database.peek(lambda reader: (reader.now, find_zone(reader)))
    return partial(moment, now=now, zone=zone, language=language_of(request))


async def send_file(
    request: web.Request, chunks: AsyncIterator[bytes], kind: str, name: str
) -> web.StreamResponse:
    """Stream a file to download; if it breaks off, the browser sees an incomplete answer."""
    disposition = f'attachment; filename="{name}"'
    response = web.StreamResponse(
        headers={**HEADERS, "Content-Type": kind, "Content-Disposition": disposition}
    )
    await response.prepare(request)
    async for chunk in chunks:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await response.write(chunk)
    await response.write_eof()
    return response


def attached(body: bytes, kind: str, name: str) -> web.Response:
    """Return a file to download."""
    disposition = f'attachment; filename="{name}"'
    headers = {**HEADERS, "Content-Disposition": disposition}
    return web.Response(body=body, content_type=kind, headers=headers)
