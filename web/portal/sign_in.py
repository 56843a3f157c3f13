"""Sign-in and sign-out (docs/security.md, S6, S7, S9, S31)."""

from datetime import datetime
from urllib.parse import urlsplit

from aiohttp import web

from appliance.clock import Clock
from appliance.core.errors import CodeLater, RateLimited, ValidationError
from appliance.core.tokens import hash_token
from appliance.http.rate_limit import RateLimit
from appliance.http.request import is_from_our_page
from appliance.staff.model import has_owner, set_language
from appliance.staff.sign_in import (
    OpenedSession,
    begin_sign_in,
    is_known_browser,
    note_wrong_password,
    sign_out,
)
from appliance.staff.two_factor import (
    CodeAsked,
    GivenCode,
    NoSession,
    pass_password,
    verify_second_factor,
)
from appliance.venue.rows import get_venue
from web.guest.responses import environment_of, page
from web.middleware import SECURE
from web.portal.forms import FORM, Form, read_form
from web.portal.guard import PASSWORDS, find_living_session
from web.portal.navigation import Handler
from web.portal.responses import find_zone, language_of, refusal_text, see_other
from web.portal.session import (
    HOUSE,
    SESSION,
    describe_browser,
    device_secret,
    forget_session,
    keep_session,
)
from web.rendering import LANGUAGES

_HOME = "/portal"
_TRIES_PER_MINUTE = 60  # per address: each costs 64 MiB for a moment


class SignIn:
    """The sign-in page and its rate limit per minute."""

    def __init__(self, clock: Clock) -> None:
        self._tries = RateLimit(clock, _TRIES_PER_MINUTE)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """`GET /portal/sign-in`: the form, or a redirect if already signed in."""
        if not request.app[SECURE].is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        if find_living_session(request, environment_of(request)) is not None:
            return _go_on(request)
        return await self._form(request)

    async def enter(self, request: web.Request) -> web.StreamResponse:
        """`POST /portal/sign-in`: open a session, or show one error for every failure.

        With two-factor, a second form asks for a code and posts here as well.
        """
        if not request.app[SECURE].is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        house = environment_of(request)
        if not is_from_our_page(request, house.links.base):
            return await self._form(request, status=403)
        try:
            self._tries.spend(_who_tries(request))
            form = await read_form(request)
            take = self._take_code if form.secret("asked") else self._take_password
            return await take(request, form)
        except (RateLimited, ValidationError) as refusal:
            problem = refusal_text(refusal, language_of(request))
            answer = await self._form(request, problem=problem, status=refusal.status)
            answer.headers.update(refusal.headers)
            return answer

    async def _take_password(self, request: web.Request, form: Form) -> web.StreamResponse:
        """Check name and password: open a session, or show the code form (two-factor)."""
        house, language = environment_of(request), language_of(request)
        name, known = form.text("name"), device_secret(request)
        attempt = await house.database.write(begin_sign_in, name, known)
        right = await request.app[PASSWORDS].matches(
            attempt.password_hash, form.secret("password"), is_stranger=attempt.is_strangers
        )
        passed: OpenedSession | CodeAsked | None = None
        if right:
            passed = await house.database.write(
                pass_password, attempt, known, describe_browser(request)
            )
        if passed is None:
            await house.database.write(note_wrong_password, attempt)
            wrong = language.gettext("This name and password do not belong together.")
            return await self._form(request, name=name, problem=wrong, status=401)
        if isinstance(passed, CodeAsked):
            return await _code_form(request, GivenCode(passed.secret, "", ""))
        return _enter_portal(request, passed)

    async def _take_code(self, request: web.Request, form: Form) -> web.StreamResponse:
        """Check the code: open a session, or show the code form again."""
        house, language = environment_of(request), language_of(request)
        given = GivenCode(form.secret("asked"), form.text("code"), form.text("recovery"))
        try:
            passed = await house.database.write(
                verify_second_factor,
                house.keyring,
                given,
                device_secret(request),
                describe_browser(request),
            )
        except CodeLater as refusal:
            problem = refusal_text(refusal, language)
            answer = await _code_form(request, given, problem, refusal.status)
            answer.headers.update(refusal.headers)
            return answer
        if passed is NoSession.WRONG:
            wrong = language.gettext("This code does not fit, or it was used before.")
            return await _code_form(request, given, wrong, 401)
        if passed is NoSession.OVER:
            over = language.gettext("More than five minutes have passed: please sign in again.")
            return await self._form(request, problem=over, status=401)
        return _enter_portal(request, passed)

    async def _form(
        self, request: web.Request, *, name: str = "", problem: str | None = None, status: int = 200
    ) -> web.Response:
        database = environment_of(request).database
        values: dict[str, object] = {
            "venue": (await database.read(get_venue)).name,
            "name": name,
            "problem": problem,
            "note": request.query.get("note"),
            "in_use": await database.read(has_owner),
        }
        return page(request, "portal/sign_in.html", values, status)


def _who_tries(request: web.Request) -> str:
    """Return the key of the rate limit: a known browser by itself, others by address."""
    known = device_secret(request)
    if known is not None:
        device = hash_token(known)
        if environment_of(request).database.peek(is_known_browser, device):
            return f"device {device.hex()}"
    return request.app[SECURE].caller_of(request)


def sign_in_routes(clock: Clock) -> tuple[tuple[str, str, Handler], ...]:
    """Return the routes of the public sign-in page, which exists only in live."""
    sign_in = SignIn(clock)
    return (("GET", "/portal/sign-in", sign_in.show), ("POST", "/portal/sign-in", sign_in.enter))


async def go_home(request: web.Request) -> web.StreamResponse:
    """`GET /portal`: redirect to the evening."""
    return see_other(request, "/tonight")


async def leave(request: web.Request) -> web.StreamResponse:
    """`POST /portal/sign-out`: end this browser's session."""
    session = request[SESSION]
    await request[HOUSE].database.write(sign_out, session.person.id, session.id)
    response = web.Response(status=303, headers={"Location": "/portal/sign-in?note=signed-out"})
    forget_session(response)
    return response


async def choose_language(request: web.Request) -> web.StreamResponse:
    """`POST /portal/language`: set this person's language in the portal."""
    language = request.config_dict[LANGUAGES].get(request[FORM].text("language")).code
    await request[HOUSE].database.write(set_language, request[SESSION].person.id, language)
    return _go_on(request)


async def _code_form(
    request: web.Request, given: GivenCode, problem: str | None = None, status: int = 200
) -> web.Response:
    """Return the code form; it shows the box's time, on which the codes depend.

    After a recovery code, its field is open again.
    """
    database = environment_of(request).database
    zone = await database.read(find_zone)
    now = datetime.fromtimestamp(database.clock.now() / 1000, zone)
    values: dict[str, object] = {
        "venue": (await database.read(get_venue)).name,
        "asked": given.form,
        "by_recovery": bool(given.recovery),
        "time": f"{now:%H:%M}",
        "problem": problem,
    }
    return page(request, "portal/sign_in_code.html", values, status)


def _enter_portal(request: web.Request, opened: OpenedSession) -> web.Response:
    response = _go_on(request)
    keep_session(response, opened)
    return response


def _go_on(request: web.Request) -> web.Response:
    """Redirect to the page that was requested before sign-in."""
    return web.Response(status=303, headers={"Location": _safe_next(request.query.get("next"))})


def _safe_next(target: str | None) -> str:
    """Return `target` if it is a path of the portal: no redirect leaves this site."""
    if target is None or "\\" in target or not target.startswith("/") or target[:2] == "//":
        return _HOME
    if not target.isprintable():  # a header cannot contain line breaks: sign-in would fail
        return _HOME
    parts = urlsplit(target)
    inside = parts.path.startswith(("/portal", "/test/portal")) and ".." not in parts.path
    return target if inside and not parts.netloc else _HOME
