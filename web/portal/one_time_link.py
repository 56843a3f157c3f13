"""One-time links that set a password: invitations, and the first owner of a box.

The secret follows `#`, so no request, log or referrer contains it before the form is sent
(docs/security.md, S8). An invitation works once within 72 hours, the link of a new box within
30 minutes.
"""

from collections.abc import Awaitable, Callable

from aiohttp import web

from appliance.clock import Clock
from appliance.core.errors import RateLimited, ValidationError
from appliance.core.tokens import hash_token
from appliance.database.connection import Reader
from appliance.http.rate_limit import RateLimit
from appliance.http.request import is_from_our_page
from appliance.staff.accounts import accept_invitation
from appliance.staff.first_run import create_first_owner, is_setup_link
from appliance.staff.model import PASSWORD_MAX, PASSWORD_MIN, find_invited, has_owner
from appliance.venue.rows import get_venue
from web.guest.responses import environment_of, page
from web.middleware import SECURE
from web.portal.forms import Form, read_form
from web.portal.guard import hash_new
from web.portal.navigation import Handler
from web.portal.responses import Declined, language_of, refusal_text
from web.portal.session import describe_browser, device_secret, keep_session
from web.rendering import LANGUAGES

Take = Callable[[web.Request, Form, bytes], Awaitable[web.Response | None]]
_TRIES_PER_MINUTE = 10
_SECRET_MAX = 100
_LINK_MAX = 2000  # the whole link may be pasted
# A redirect keeps the old fragment unless it has its own: this removes the secret.
_FIRST_STEP = "/portal/venue/rules#begin"


class _LinkPage:
    """A page whose form needs a link's secret; limits the attempts of each caller.

    `take` sets the password from the form, given the hash of the secret. It returns None for a
    dead link and raises Declined for an invalid name or password. When `is_over` is true, no link
    works any more.
    """

    def __init__(
        self, clock: Clock, form: str, dead: str, take: Take,
        is_over: Callable[[Reader], bool] = lambda _: False,
    ) -> None:  # fmt: skip
        self._tries = RateLimit(clock, _TRIES_PER_MINUTE)
        self._template, self._dead, self._take, self._is_over = form, dead, take, is_over

    async def show(self, request: web.Request) -> web.Response:
        """Show the form. A GET does not use up the link."""
        if not request.app[SECURE].is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        if await environment_of(request).database.read(self._is_over):
            return page(request, self._dead, {})
        return self._form(request)

    async def take(self, request: web.Request) -> web.Response:
        """Set the password. Unknown, used and expired links get the same answer."""
        if not request.app[SECURE].is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        if not is_from_our_page(request, environment_of(request).links.base):
            return self._form(request, status=403)
        try:
            self._tries.spend(request.app[SECURE].caller_of(request))
        except RateLimited as refusal:
            answer = page(request, "portal/slow_down.html", {}, status=429)
            answer.headers.update(refusal.headers)
            return answer
        name = secret = ""
        try:
            form = await read_form(request)
            name = form.text("name")
            secret = form.text("link", _LINK_MAX).rpartition("#")[2][:_SECRET_MAX]
            done = await self._take(request, form, hash_token(secret))
        except (ValidationError, Declined) as refusal:
            said = refusal_text(refusal, language_of(request))
            return self._form(request, name, secret, said, refusal.status)
        return done or page(request, self._dead, {}, status=404)

    def _form(
        self, request: web.Request, name: str = "", secret: str = "", problem: str = "",
        status: int = 200,
    ) -> web.Response:  # fmt: skip
        values: dict[str, object] = {
            "name": name,
            "secret": secret,
            "problem": problem,
            "shortest": PASSWORD_MIN,
            "longest": PASSWORD_MAX,
        }
        return page(request, self._template, values, status)


async def _welcome(request: web.Request, form: Form, link_hash: bytes) -> web.Response | None:
    """Accept an invitation and set the password."""
    database = environment_of(request).database
    person, venue = await database.read(lambda r: (find_invited(r, link_hash), get_venue(r)))
    if person is None:
        return None
    hashed = await hash_new(request, form.secret("password"), (person.name, venue.name))
    if not await database.write(accept_invitation, link_hash, hashed):
        return None
    return page(request, "portal/ready.html", {"name": person.name})


async def _found(request: web.Request, form: Form, link_hash: bytes) -> web.Response | None:
    """Create the box's first owner and sign them in."""
    database, name = environment_of(request).database, form.text("name")
    if not await database.read(lambda r: not has_owner(r) and is_setup_link(r, link_hash)):
        return None
    if not name:
        _ = language_of(request).gettext
        raise Declined(_("Please say your name: it is what you sign in with."))
    opened = await database.write(
        create_first_owner,
        link_hash,
        name,
        await hash_new(request, form.secret("password"), (name,)),
        language=request.config_dict[LANGUAGES].get(form.text("language")).code,
        device_secret=device_secret(request),
        device=describe_browser(request),
    )
    if opened is None:
        return None
    response = web.Response(status=303, headers={"Location": _FIRST_STEP})
    keep_session(response, opened)
    return response


def one_time_link_routes(clock: Clock) -> tuple[tuple[str, str, Handler], ...]:
    """Return the routes. Staff accounts belong to live, so they exist only there."""
    welcome = _LinkPage(clock, "portal/welcome.html", "portal/dead_link.html", _welcome)
    first = _LinkPage(clock, "portal/setup/first.html", "portal/setup/over.html", _found, has_owner)
    return (
        ("GET", "/portal/welcome", welcome.show),
        ("POST", "/portal/welcome", welcome.take),
        ("GET", "/portal/setup", first.show),
        ("POST", "/portal/setup", first.take),
    )
