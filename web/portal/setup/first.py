"""The first page of a new box: the link makes an owner, who is signed in (docs/security.md, S8).

The link's secret stands behind `#`, so nothing carries it before the form is sent.
"""

from collections.abc import Awaitable, Callable

from aiohttp import web

from appliance.actions.set_up import found_owner
from appliance.actions.sign_in import OpenedSession
from appliance.clock import Clock
from appliance.errors import RateLimited, ValidationError
from appliance.i18n import Language
from appliance.model.staff import PASSWORD_MAX, PASSWORD_MIN
from appliance.rate_limit import RateLimit
from appliance.store.connection import Reader
from appliance.store.setup import is_setup_link
from appliance.store.staff import has_owner
from appliance.tokens import hash_token
from terminal_bridge.same_origin import is_from_our_page
from web.guest.answer import environment_of, language_of, page
from web.names.secure import SECURE
from web.portal.answer import refusal_text
from web.portal.device import describe_device
from web.portal.forms import Form, read_form
from web.portal.new_password import password_problem
from web.portal.passwords import PASSWORDS
from web.portal.private import is_private
from web.portal.session_cookie import device_secret, keep_session
from web.rendering import LANGUAGES

_TRIES_PER_MINUTE = 10
_SECRET_MAX = 100
# A browser carries the old fragment on unless it is given another: the secret goes.
_FIRST_STEP = "/portal/setup/venue#begin"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _First:
    """The page, and who tried how often."""

    def __init__(self, clock: Clock) -> None:
        self._tries = RateLimit(clock, _TRIES_PER_MINUTE)

    async def show(self, request: web.Request) -> web.Response:
        """`GET /portal/setup`: the form. Looking uses nothing up."""
        if not is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        if await environment_of(request).database.read(has_owner):
            return _over(request, status=200)
        return _form(request)

    async def found(self, request: web.Request) -> web.StreamResponse:
        """`POST /portal/setup`: the owner. Unknown, used and expired links are alike."""
        turned_away = self._turn_away(request)
        if turned_away is not None:
            return turned_away
        try:
            form = await read_form(request)
            name, secret = form.text("name"), _secret(form)
        except ValidationError as refusal:
            said = refusal_text(refusal, language_of(request))
            return _form(request, problem=said, status=refusal.status)
        if not await environment_of(request).database.read(_works, hash_token(secret)):
            return _over(request)
        problem = _problem(name, form.secret("password"), language_of(request))
        if problem is not None:
            return _form(request, name=name, secret=secret, problem=problem, status=400)
        opened = await _found(request, form, name, secret)
        if opened is None:
            return _over(request)
        response = web.Response(status=303, headers={"Location": _FIRST_STEP})
        keep_session(response, opened)
        return response

    def _turn_away(self, request: web.Request) -> web.Response | None:
        """The answer to who may not send the form: unprotected, from elsewhere, too often."""
        if not is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        if not is_from_our_page(request, environment_of(request).links.base):
            return _form(request, status=403)
        try:
            self._tries.spend(request.app[SECURE].caller_of(request))
        except RateLimited as refusal:
            answer = page(request, "portal/slow_down.html", {}, status=429)
            answer.headers.update(refusal.headers)
            return answer
        return None


def setup_routes(clock: Clock) -> tuple[tuple[str, str, Handler], ...]:
    """The page's addresses; it exists once, for the house."""
    first = _First(clock)
    return (("GET", "/portal/setup", first.show), ("POST", "/portal/setup", first.found))


async def _found(request: web.Request, form: Form, name: str, secret: str) -> OpenedSession | None:
    return await environment_of(request).database.write(
        found_owner,
        hash_token(secret),
        name,
        await request.app[PASSWORDS].hash(form.secret("password")),
        language=request.config_dict[LANGUAGES].get(form.text("language")).code,
        device_secret=device_secret(request),
        device=describe_device(request.headers.get("User-Agent", "")),
    )


def _problem(name: str, password: str, language: Language) -> str | None:
    if not name:
        return language.gettext("Please say your name: it is what you sign in with.")
    return password_problem(password, (name,), language)


def _works(reader: Reader, link_hash: bytes) -> bool:
    return not has_owner(reader) and is_setup_link(reader, link_hash)


def _secret(form: Form) -> str:
    """The secret, also out of a whole link that was pasted where there is no script."""
    try:
        return form.text("link", 2000).rpartition("#")[2][:_SECRET_MAX]
    except ValidationError:
        return ""


def _over(request: web.Request, status: int = 404) -> web.Response:
    return page(request, "portal/setup/over.html", {}, status=status)


def _form(
    request: web.Request,
    *,
    name: str = "",
    secret: str = "",
    problem: str | None = None,
    status: int = 200,
) -> web.Response:
    values: dict[str, object] = {
        "name": name,
        "secret": secret,
        "problem": problem,
        "shortest": PASSWORD_MIN,
        "longest": PASSWORD_MAX,
    }
    return page(request, "portal/setup/first.html", values, status)
