"""Sign-in, sign-out, and the pages behind one-time links that set a password.

There are two kinds of link. Invitations are valid for 72 hours. The setup link, which creates a new
box's first owner, is valid for 30 minutes. A link's secret follows `#`, so browsers send it only
with the form, and it appears in no log and no referrer (docs/security.md, S6 to S9 and S31).
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from appliance.clock import Clock
from appliance.core.errors import ApiError, CodeLater, RateLimited, ValidationError
from appliance.core.tokens import hash_token
from appliance.database.connection import Reader
from appliance.http.rate_limit import RateLimit
from appliance.http.request import ENVIRONMENT, is_from_our_page
from appliance.staff.accounts import accept_invitation, create_first_owner, is_setup_link
from appliance.staff.model import PASSWORD_MAX, PASSWORD_MIN, find_invited, has_owner, set_language
from appliance.staff.sign_in import (
    OpenedSession,
    begin_sign_in,
    is_known_browser,
    note_wrong_password,
    sign_out,
)
from appliance.staff.two_factor import (
    GivenCode,
    NoSession,
    pass_password,
    verify_second_factor,
)
from appliance.venue.model import find_zone, get_venue
from web.guest.responses import page
from web.middleware import SECURE
from web.portal.cookies import SESSION, describe_browser, device_secret, signed_in, signed_out
from web.portal.forms import Form, read_form
from web.portal.guard import PASSWORDS, find_living_session, hash_new_password, staff_of
from web.portal.navigation import Handler
from web.portal.responses import Declined, language_of, refusal_text, see_other
from web.rendering import LANGUAGES

_HOME = "/portal"
_SIGN_INS_PER_MINUTE = 60  # limit per caller, because each password check needs 64 MiB
_LINKS_PER_MINUTE = 10
_SECRET_MAX = 100
# The field for the link's secret also accepts the whole link.
_LINK_MAX = 2000
# Without the fragment `begin`, browsers would keep the setup link's fragment, which is its secret.
_FIRST_STEP = "/portal/venue/rules#begin"


def _public_page(
    request: web.Request, template: str, values: dict[str, object],
    refusal: ApiError | Declined | None = None,
) -> web.Response:  # fmt: skip
    """Return a page for visitors who are not signed in.

    If `refusal` is an error, the page displays it, and the response uses its status and headers.
    """
    query = {name: value for name, value in request.query.items() if name != "lang"}
    values["kept"] = f"{urlencode(query)}&" if query else ""
    if refusal is None:
        return page(request, template, {**values, "problem": None})
    problem = refusal_text(refusal, language_of(request))
    response = page(request, template, {**values, "problem": problem}, refusal.status)
    response.headers.update(refusal.headers)
    return response


class SignIn:
    """The sign-in page and its rate limit."""

    def __init__(self, clock: Clock) -> None:
        self._limit = RateLimit(clock, _SIGN_INS_PER_MINUTE)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """`GET /portal/sign-in`: show the form, or redirect if the browser is already signed in."""
        if find_living_session(request, request[ENVIRONMENT]) is not None:
            return _go_on(request)
        return await self._form(request)

    async def take(self, request: web.Request) -> web.StreamResponse:
        """`POST /portal/sign-in`: sign in. Wrong names and wrong passwords get the same error.

        For accounts with two-factor sign-in, a second form asks for a code. This handler also
        receives the second form.
        """
        name = ""
        try:
            self._limit.spend(_rate_limit_key(request))
            form = await read_form(request)
            if form.secret("asked"):
                return await _take_code(request, form)
            name = form.text("name")
            return await _take_password(request, name, form.secret("password"))
        except (RateLimited, ValidationError, Declined) as refusal:
            return await self._form(request, name, refusal)

    async def _form(
        self, request: web.Request, name: str = "", refusal: ApiError | Declined | None = None
    ) -> web.Response:
        database = request[ENVIRONMENT].database
        values: dict[str, object] = {
            "venue": (await database.read(get_venue)).name,
            "name": name,
            "note": request.query.get("note"),
            "in_use": await database.read(has_owner),
        }
        return _public_page(request, "portal/sign_in.html", values, refusal)


async def _take_password(request: web.Request, name: str, password: str) -> web.StreamResponse:
    """Check the password, then sign in, or show the code form if two-factor sign-in is enabled.

    Raises Declined if the name or the password is wrong.
    """
    database, device = request[ENVIRONMENT].database, device_secret(request)
    attempt = await database.write(begin_sign_in, name, device)
    passed: OpenedSession | str | None = None
    if await request.app[PASSWORDS].matches(
        attempt.password_hash, password, is_stranger=attempt.is_strangers
    ):
        passed = await database.write(pass_password, attempt, device, describe_browser(request))
    if passed is None:
        await database.write(note_wrong_password, attempt)
        _ = language_of(request).gettext
        raise Declined(_("Wrong name or password."), 401)
    if isinstance(passed, str):
        return await _code_form(request, GivenCode(passed, "", ""))
    return signed_in(request, _next_page(request), passed)


async def _take_code(request: web.Request, form: Form) -> web.StreamResponse:
    """Sign in if the two-factor code is right. Otherwise, show the code form again.

    Raises Declined if the password was entered more than five minutes ago.
    """
    live, _ = request[ENVIRONMENT], language_of(request).gettext
    given = GivenCode(form.secret("asked"), form.text("code"), form.text("recovery"))
    device, browser = device_secret(request), describe_browser(request)
    try:
        passed = await live.database.write(
            verify_second_factor, live.keyring, given, device, browser
        )
    except CodeLater as refusal:
        return await _code_form(request, given, refusal)
    if passed is NoSession.WRONG:
        wrong = _("This code is wrong or has already been used.")
        return await _code_form(request, given, Declined(wrong, 401))
    if passed is NoSession.OVER:
        raise Declined(_("This form has expired or was already used. Please sign in again."), 401)
    return signed_in(request, _next_page(request), passed)


def _rate_limit_key(request: web.Request) -> str:
    """Return the key for rate limits.

    The key identifies the browser if someone has signed in with it before. Otherwise, it is the
    client's address.
    """
    secret = device_secret(request)
    if secret is not None:
        device_hash = hash_token(secret)
        if request[ENVIRONMENT].database.peek(is_known_browser, device_hash):
            return f"device {device_hash.hex()}"
    return request.app[SECURE].caller_of(request)


async def go_home(request: web.Request) -> web.StreamResponse:
    """`GET /portal`: redirect to tonight's board."""
    return see_other(request, "/tonight")


async def sign_out_browser(request: web.Request, _form: Form) -> web.StreamResponse:
    """`POST /portal/sign-out`: end this browser's session."""
    session = request[SESSION]
    await request[ENVIRONMENT].database.write(sign_out, session.person.id, session.id)
    return signed_out(request, "signed-out")


async def choose_language(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/language`: set the staff member's language for the portal."""
    language = request.config_dict[LANGUAGES].get(form.text("language")).code
    await request[ENVIRONMENT].database.write(set_language, staff_of(request).id, language)
    return _go_on(request)


async def _code_form(
    request: web.Request, given: GivenCode, refusal: ApiError | Declined | None = None
) -> web.Response:
    """Return the form for the two-factor code. It shows the box's time, because codes depend on it.

    If a recovery code was entered, the form shows the field for it.
    """
    database = request[ENVIRONMENT].database
    zone = await database.read(find_zone)
    now = datetime.fromtimestamp(database.clock.now() / 1000, zone)
    values: dict[str, object] = {
        "venue": (await database.read(get_venue)).name,
        "asked": given.form,
        "by_recovery": bool(given.recovery),
        "time": f"{now:%H:%M}",
    }
    return _public_page(request, "portal/sign_in_code.html", values, refusal)


def _next_page(request: web.Request) -> str:
    """Return the page in `?next=` that was requested before sign-in, or the portal's first page."""
    return _safe_next(request.query.get("next"))


def _go_on(request: web.Request) -> web.Response:
    return web.Response(status=303, headers={"Location": _next_page(request)})


def _safe_next(target: str | None) -> str:
    """Return `target`, or the portal's first page if `target` is not a portal path on this site."""
    if target is None or "\\" in target or not target.startswith("/") or target[:2] == "//":
        return _HOME
    if not target.isprintable():  # a line break is invalid in a header
        return _HOME
    parts = urlsplit(target)
    inside = parts.path.startswith(("/portal", "/test/portal")) and ".." not in parts.path
    return target if inside and not parts.netloc else _HOME


Take = Callable[[web.Request, Form, bytes], Awaitable[web.Response | None]]


class _LinkPage:
    """The page behind a one-time link. Its form sets a password. Attempts are rate-limited.

    `template` shows the form, and `dead` is the template for invalid links. `take(request, form,
    link_hash)` sets the password, where `link_hash` is the hash of the link's secret. It returns
    None if the link is invalid, and raises Declined if the name or the password is invalid. While
    `is_over` returns true, the page treats every link as invalid.
    """

    def __init__(
        self, clock: Clock, template: str, dead: str, take: Take,
        is_over: Callable[[Reader], bool] = lambda _: False,
    ) -> None:  # fmt: skip
        self._limit = RateLimit(clock, _LINKS_PER_MINUTE)
        self._template, self._dead, self._take, self._is_over = template, dead, take, is_over

    async def show(self, request: web.Request) -> web.Response:
        """Show the form. Opening the page does not use up the link."""
        if await request[ENVIRONMENT].database.read(self._is_over):
            return page(request, self._dead, {})
        return self._form(request)

    async def take(self, request: web.Request) -> web.Response:
        """Set the password. Unknown, used and expired links all get the same response."""
        try:
            self._limit.spend(request.app[SECURE].caller_of(request))
        except RateLimited as refusal:
            return _public_page(request, "portal/slow_down.html", {}, refusal)
        name = secret = ""
        try:
            form = await read_form(request)
            name = form.text("name")
            secret = form.text("link", _LINK_MAX).rpartition("#")[2][:_SECRET_MAX]
            done = await self._take(request, form, hash_token(secret))
        except (ValidationError, Declined) as refusal:
            return self._form(request, name, secret, refusal)
        return done or page(request, self._dead, {}, status=404)

    def _form(
        self, request: web.Request, name: str = "", secret: str = "",
        refusal: ApiError | Declined | None = None,
    ) -> web.Response:  # fmt: skip
        values: dict[str, object] = {
            "name": name,
            "secret": secret,
            "venue": request[ENVIRONMENT].database.peek(get_venue).name,
            "shortest": PASSWORD_MIN,
            "longest": PASSWORD_MAX,
        }
        return _public_page(request, self._template, values, refusal)


async def _welcome(request: web.Request, form: Form, link_hash: bytes) -> web.Response | None:
    """Accept an invitation by setting the password. Return None if the link is invalid."""
    database = request[ENVIRONMENT].database
    person, venue = await database.read(lambda r: (find_invited(r, link_hash), get_venue(r)))
    if person is None:
        return None
    names = (person.name, venue.name, venue.address or "")
    hashed = await hash_new_password(request, form.secret("password"), names)
    language = language_of(request).code
    if not await database.write(accept_invitation, link_hash, hashed, language):
        return None
    return page(request, "portal/ready.html", {"name": person.name})


async def _create_owner(request: web.Request, form: Form, link_hash: bytes) -> web.Response | None:
    """Create the box's first owner and sign them in. Return None if the link is invalid."""
    database, name = request[ENVIRONMENT].database, form.text("name")
    if not await database.read(lambda r: not has_owner(r) and is_setup_link(r, link_hash)):
        return None
    if not name:
        _ = language_of(request).gettext
        raise Declined(_("Please enter your name: you sign in with it."))
    opened = await database.write(
        create_first_owner,
        link_hash,
        name,
        await hash_new_password(request, form.secret("password"), (name,)),
        language=language_of(request).code,
        device_secret=device_secret(request),
        device=describe_browser(request),
    )
    if opened is None:
        return None
    return signed_in(request, _FIRST_STEP, opened)


def _public(handler: Handler, form_page: Handler | None = None) -> Handler:
    """Wrap a public page's handler. `form_page` is None, or shows the form that `handler` receives.

    If the connection is neither TLS nor loopback, show an explanation. If a form comes from another
    site, show the empty form.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        if not request.app[SECURE].is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        if form_page is None or is_from_our_page(request, request[ENVIRONMENT].links.base):
            return await handler(request)
        response = await form_page(request)
        response.set_status(403)
        return response

    return handle


def public_portal_routes(clock: Clock) -> tuple[tuple[str, str, Handler], ...]:
    """Return the portal's public routes.

    They exist only in the live environment, which stores all staff accounts.
    """
    pages: dict[str, SignIn | _LinkPage] = {
        "/portal/sign-in": SignIn(clock),
        "/portal/welcome": _LinkPage(
            clock, "portal/welcome.html", "portal/dead_link.html", _welcome
        ),
        "/portal/setup": _LinkPage(
            clock, "portal/setup/first.html", "portal/setup/over.html", _create_owner, has_owner
        ),
    }
    shown = (("GET", path, _public(one.show)) for path, one in pages.items())
    taken = (("POST", path, _public(one.take, one.show)) for path, one in pages.items())
    return (*shown, *taken)
