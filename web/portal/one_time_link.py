"""The pages of a one-time link, which sets a password: an invitation, and a box's first owner.

The link's secret stands behind `#`, so no request, log or referrer carries it before the form
is sent (docs/security.md, S8). An invitation works once, for 72 hours; the link of a new box for
30 minutes.
"""

from dataclasses import dataclass

from aiohttp import web

from appliance.actions.accept_invitation import accept_invitation
from appliance.actions.set_up import found_owner
from appliance.clock import Clock
from appliance.errors import RateLimited, ValidationError
from appliance.model.staff import PASSWORD_MAX, PASSWORD_MIN, StaffMember
from appliance.rate_limit import RateLimit
from appliance.store.connection import Reader
from appliance.store.setup import is_setup_link
from appliance.store.staff import find_invited, has_owner
from appliance.store.venue import get_venue
from appliance.tokens import hash_token
from terminal_bridge.same_origin import is_from_our_page
from web.guest.answer import environment_of, language_of, page
from web.names.secure import SECURE
from web.portal.answer import Declined, refusal_text
from web.portal.forms import read_form
from web.portal.navigation import Handler
from web.portal.passwords import PASSWORDS, password_problem
from web.portal.session_cookie import describe_browser, device_secret, keep_session
from web.rendering import LANGUAGES

_TRIES_PER_MINUTE = 10
_SECRET_MAX = 100
_LINK_MAX = 2000  # somebody may paste the whole of it
# A browser carries the old fragment on unless it is given another: the secret goes.
_FIRST_STEP = "/portal/venue/rules#begin"


@dataclass(frozen=True, slots=True)
class _Sent:
    """What the form brought; empty texts where it has none."""

    secret: str
    name: str
    password: str
    language: str


class _LinkPage:
    """A page whose form needs the secret of a link, and what it remembers: who tried how often."""

    form_template: str
    dead_template: str

    def __init__(self, clock: Clock) -> None:
        self._tries = RateLimit(clock, _TRIES_PER_MINUTE)

    async def show(self, request: web.Request) -> web.Response:
        """The form. Looking uses nothing up."""
        if not request.app[SECURE].is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        if await self.is_over(request):
            return page(request, self.dead_template, {})
        return self._form(request)

    async def take(self, request: web.Request) -> web.Response:
        """The password. Unknown, used and expired links are alike."""
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
        try:
            form = await read_form(request)
            secret = form.text("link", _LINK_MAX).rpartition("#")[2][:_SECRET_MAX]
            name, language = form.text("name"), form.text("language")
        except ValidationError as refusal:
            said = refusal_text(refusal, language_of(request))
            return self._form(request, problem=said, status=refusal.status)
        sent = _Sent(secret, name, form.secret("password"), language)
        try:
            done = await self.do(request, sent)
        except Declined as declined:
            return self._form(
                request, name=name, secret=secret, problem=declined.sentence, status=400
            )
        return done or page(request, self.dead_template, {}, status=404)

    async def is_over(self, _request: web.Request) -> bool:
        """Whether no link can work here any more."""
        return False

    async def do(self, request: web.Request, sent: _Sent) -> web.Response | None:
        """Set the password; None for a dead link, Declined for a password that will not do."""
        raise NotImplementedError

    def _form(
        self,
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
        return page(request, self.form_template, values, status)


class _Welcome(_LinkPage):
    """A person of the house opens an invitation and chooses a password."""

    form_template = "portal/welcome.html"
    dead_template = "portal/dead_link.html"

    async def do(self, request: web.Request, sent: _Sent) -> web.Response | None:
        database, link_hash = environment_of(request).database, hash_token(sent.secret)
        invited = await database.read(_find_invited, link_hash)
        if invited is None:
            return None
        person, venue = invited
        hashed = await _hash(request, sent.password, (person.name, venue))
        if not await database.write(accept_invitation, link_hash, hashed):
            return None
        return page(request, "portal/ready.html", {"name": person.name})


class _First(_LinkPage):
    """The link of a new box makes its owner, who is signed in."""

    form_template = "portal/setup/first.html"
    dead_template = "portal/setup/over.html"

    async def is_over(self, request: web.Request) -> bool:
        return await environment_of(request).database.read(has_owner)

    async def do(self, request: web.Request, sent: _Sent) -> web.Response | None:
        database, link_hash = environment_of(request).database, hash_token(sent.secret)
        if not await database.read(_works, link_hash):
            return None
        if not sent.name:
            _ = language_of(request).gettext
            raise Declined(_("Please say your name: it is what you sign in with."))
        opened = await database.write(
            found_owner,
            link_hash,
            sent.name,
            await _hash(request, sent.password, (sent.name,)),
            language=request.config_dict[LANGUAGES].get(sent.language).code,
            device_secret=device_secret(request),
            device=describe_browser(request),
        )
        if opened is None:
            return None
        response = web.Response(status=303, headers={"Location": _FIRST_STEP})
        keep_session(response, opened)
        return response


def one_time_link_routes(clock: Clock) -> tuple[tuple[str, str, Handler], ...]:
    """The pages' addresses. Staff belong to the house: they exist in live alone."""
    welcome, first = _Welcome(clock), _First(clock)
    return (
        ("GET", "/portal/welcome", welcome.show),
        ("POST", "/portal/welcome", welcome.take),
        ("GET", "/portal/setup", first.show),
        ("POST", "/portal/setup", first.take),
    )


async def _hash(request: web.Request, password: str, names: tuple[str, ...]) -> str:
    problem = password_problem(password, names, language_of(request))
    if problem is not None:
        raise Declined(problem)
    return await request.app[PASSWORDS].hash(password)


def _find_invited(reader: Reader, link_hash: bytes) -> tuple[StaffMember, str] | None:
    person = find_invited(reader, link_hash)
    return None if person is None else (person, get_venue(reader).name)


def _works(reader: Reader, link_hash: bytes) -> bool:
    return not has_owner(reader) and is_setup_link(reader, link_hash)
