"""The welcome page: a person of the house opens an invitation and chooses a password.

The link's secret stands behind `#`, so no request, log or referrer carries it before the form
is sent (docs/security.md, S8). It works once, for 72 hours.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from appliance.actions.accept_invitation import accept_invitation
from appliance.clock import Clock
from appliance.errors import RateLimited, ValidationError
from appliance.model.staff import PASSWORD_MAX, PASSWORD_MIN, StaffMember
from appliance.rate_limit import RateLimit
from appliance.store.connection import Reader
from appliance.store.staff import find_invited
from appliance.store.venue import get_venue
from appliance.tokens import hash_token
from terminal_bridge.same_origin import is_from_our_page
from web.guest.answer import environment_of, language_of, page
from web.names.secure import SECURE
from web.portal.forms import read_form
from web.portal.new_password import password_problem
from web.portal.passwords import PASSWORDS
from web.portal.private import is_private

_TRIES_PER_MINUTE = 10
_SECRET_MAX = 100
_LINK_MAX = 2000  # somebody may paste the whole of it

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class _Invited:
    """Who holds a living link, and the venue that invites."""

    person: StaffMember
    venue: str


class _Welcome:
    """The page and what it remembers: who tried how often."""

    def __init__(self, clock: Clock) -> None:
        self._tries = RateLimit(clock, _TRIES_PER_MINUTE)

    async def show(self, request: web.Request) -> web.Response:
        """`GET /portal/welcome`: the form. Looking changes nothing."""
        if not is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        return _form(request)

    async def accept(self, request: web.Request) -> web.Response:
        """`POST /portal/welcome`: the password. Unknown, used and expired links are alike."""
        turned_away = self._turn_away(request)
        if turned_away is not None:
            return turned_away
        database = environment_of(request).database
        secret, password = await _read_form(request)
        link_hash = hash_token(secret)
        invited = await database.read(_find_invited, link_hash)
        if invited is None:
            return page(request, "portal/dead_link.html", {}, status=404)
        problem = _problem(request, password, invited)
        if problem is not None:
            return _form(request, secret=secret, problem=problem, status=400)
        if not await database.write(
            accept_invitation, link_hash, await request.app[PASSWORDS].hash(password)
        ):
            return page(request, "portal/dead_link.html", {}, status=404)
        return page(request, "portal/ready.html", {"name": invited.person.name})

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


def welcome_routes(clock: Clock) -> tuple[tuple[str, str, Handler], ...]:
    """The page's addresses. Staff belong to the house: the page exists in live alone."""
    welcome = _Welcome(clock)
    return (
        ("GET", "/portal/welcome", welcome.show),
        ("POST", "/portal/welcome", welcome.accept),
    )


def _form(
    request: web.Request, *, secret: str = "", problem: str | None = None, status: int = 200
) -> web.Response:
    values: dict[str, object] = {
        "secret": secret,
        "problem": problem,
        "shortest": PASSWORD_MIN,
        "longest": PASSWORD_MAX,
    }
    return page(request, "portal/welcome.html", values, status)


async def _read_form(request: web.Request) -> tuple[str, str]:
    """The link's secret and the password; empty texts where the form has none."""
    try:
        form = await read_form(request)
        secret = form.text("link", _LINK_MAX)
    except ValidationError:
        return "", ""
    return secret.rpartition("#")[2][:_SECRET_MAX], form.secret("password")


def _find_invited(reader: Reader, link_hash: bytes) -> _Invited | None:
    person = find_invited(reader, link_hash)
    return None if person is None else _Invited(person, get_venue(reader).name)


def _problem(request: web.Request, password: str, invited: _Invited) -> str | None:
    """What is wrong with the password, in the visitor's language."""
    return password_problem(password, (invited.person.name, invited.venue), language_of(request))
