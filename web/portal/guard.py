"""Access to portal pages; password hashing and password checks before sensitive actions."""

import asyncio
from functools import cached_property

import argon2
from aiohttp import web
from yarl import URL

from appliance.core.errors import ApiError, NotFound, RateLimited, StaffRoleMissing, Unavailable
from appliance.core.tokens import hash_token
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT, RECHECK_AUTHORISATION, is_from_our_page
from appliance.reservations.request import parse_uuid
from appliance.staff.model import PASSWORD_MAX, PASSWORD_MIN, StaffMember
from appliance.staff.password_strength import is_guessable
from appliance.staff.sign_in import (
    Session,
    begin_sign_in,
    find_session,
    right_password,
    touch_session,
)
from web.guest.responses import page
from web.middleware import SECURE, SERVICES, Services
from web.portal.forms import FORM, ONCE, read_form
from web.portal.navigation import SAFE, Handler, PortalRoute, nearest_page
from web.portal.responses import Declined, language_of, problem_page, see_other
from web.portal.session import HOUSE, SESSION, device_secret, session_secret

SIGN_IN = "/portal/sign-in"


def guarded(route: PortalRoute, services: Services, house: Environment) -> Handler:
    """Wrap the route's handler in the access check. Staff accounts are stored in `house` (live)."""

    async def handle(request: web.Request) -> web.StreamResponse:
        request[ENVIRONMENT] = services.environment
        request[SERVICES] = services
        request[HOUSE] = house
        if not request.app[SECURE].is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        session = find_living_session(request, house)
        if session is None:
            return _to_sign_in(request)
        request[SESSION] = session
        try:
            _admit(request, session.person, route.role)
            request[RECHECK_AUTHORISATION] = lambda later: _admit_still(later, house, route.role)
            await _touch(house, session)
            if request.method in SAFE:
                return await route.handler(request)
            return await _take_form(request, route)
        except (ApiError, Declined) as refusal:
            return problem_page(request, refusal)

    return handle


async def _take_form(request: web.Request, route: PortalRoute) -> web.StreamResponse:
    """Read the form and run its action once, even if sent repeatedly (hidden field `once`)."""
    form = request[FORM] = await read_form(request, takes_files=route.takes_files)
    token = form.text("once", 64)
    if not token:
        return await route.handler(request)

    async def act() -> web.StreamResponse:
        return await route.handler(request)

    async def show() -> web.StreamResponse:
        return see_other(request, nearest_page(request).partition("/portal")[2])

    subject = f"{request.path} {token}"
    return await request.app[ONCE].answer(request[SESSION].id, subject, act, show)


def find_living_session(request: web.Request, house: Environment) -> Session | None:
    """Return the session of the request's cookie, None if it is missing or over."""
    secret = session_secret(request)
    if secret is None:
        return None
    session = house.database.peek(find_session, hash_token(secret))
    if session is None or session.is_over(house.database.clock.now()):
        return None
    return session


def staff_of(request: web.Request) -> StaffMember:
    """Return the signed-in person; only behind the guard."""
    return request[SESSION].person


def actor_of(request: web.Request) -> str:
    """Return the actor for the logs."""
    return f"staff:{staff_of(request).id}"


def id_of(request: web.Request) -> str:
    """Return the id in the path. Raises NotFound if it is not a UUID."""
    found = parse_uuid(request.match_info["id"])
    if found is None:
        raise NotFound
    return found


def _admit(request: web.Request, person: StaffMember, role: str) -> None:
    if request.method not in SAFE and not is_from_our_page(request, request[HOUSE].links.base):
        raise StaffRoleMissing(role=role)
    if not person.may(role):
        raise StaffRoleMissing(role=role)


def _admit_still(request: web.Request, house: Environment, role: str) -> None:
    session = find_living_session(request, house)
    if session is None or not session.person.may(role):
        raise StaffRoleMissing(role=role)


async def _touch(house: Environment, session: Session) -> None:
    """Record the session's last use once a minute; ignored if the disk is full."""
    if session.is_due_for_touch(house.database.clock.now()):
        try:
            await house.database.write(touch_session, session.id)
        except Unavailable:
            return


def _to_sign_in(request: web.Request) -> web.StreamResponse:
    """Redirect to the sign-in page, with the wanted page as `next`."""
    wanted = str(request.rel_url) if request.method in SAFE else nearest_page(request)
    target = str(URL(SIGN_IN).with_query({"next": wanted}))
    if "HX-Request" in request.headers:  # redirect the whole page, not a part of it
        return web.Response(status=401, headers={"HX-Redirect": target})
    return web.Response(status=303, headers={"Location": target})


_MOST_STRANGERS = 10  # in the queue at once: a wait of a second or two


class Passwords:
    """Hashes passwords one at a time: each takes 64 MiB and one processor for a while."""

    def __init__(self) -> None:
        self._hasher = argon2.PasswordHasher()  # RFC 9106's second recommended option: 64 MiB
        self._one = asyncio.Lock()
        self._strangers = 0

    async def hash(self, password: str) -> str:
        """Return a new hash in the standard encoding."""
        async with self._one:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def matches(
        self, stored: str | None, password: str, *, is_stranger: bool = False
    ) -> bool:
        """Return whether `password` matches; `stored` None (unknown name) takes the same time.

        Raises RateLimited for an unknown browser when many of them are queued, so that known
        browsers do not wait behind guesses.
        """
        if is_stranger and self._strangers >= _MOST_STRANGERS:
            raise RateLimited
        self._strangers += is_stranger
        try:
            async with self._one:
                return await asyncio.to_thread(self._compare, stored, password)
        finally:
            self._strangers -= is_stranger

    def _compare(self, stored: str | None, password: str) -> bool:
        try:
            right = self._hasher.verify(stored or self._nobodys, password[:PASSWORD_MAX])
        except argon2.exceptions.VerifyMismatchError:
            return False
        return bool(right) and stored is not None

    @cached_property
    def _nobodys(self) -> str:
        return self._hasher.hash("nobody's")


PASSWORDS = web.AppKey("passwords", Passwords)


async def hash_new(request: web.Request, password: str, names: tuple[str, ...]) -> str:
    """Return the password's hash. Raises Declined for a bad length, or if guessable by `names`."""
    language = language_of(request)
    if not PASSWORD_MIN <= len(password) <= PASSWORD_MAX:
        raise Declined(
            language.gettext(
                "Please choose %(shortest)s to %(longest)s characters.",
                shortest=PASSWORD_MIN,
                longest=PASSWORD_MAX,
            )
        )
    if is_guessable(password, names):
        raise Declined(
            language.gettext(
                "That one is among the first that anyone would try. Please choose another."
            )
        )
    return await request.app[PASSWORDS].hash(password)


async def check_person(request: web.Request, password: str) -> None:
    """Raise Declined unless `password` is the signed-in person's. Counts as a sign-in attempt."""
    house = request[HOUSE]
    attempt = await house.database.write(
        begin_sign_in, staff_of(request).name, device_secret(request)
    )
    fits = await request.app[PASSWORDS].matches(attempt.password_hash, password)
    if fits and await house.database.write(right_password, attempt) and _is_signed_in(request):
        return
    sentence = language_of(request).gettext("The present password is another one.")
    raise Declined(sentence, field="password")


def _is_signed_in(request: web.Request) -> bool:
    """Return whether the session still exists with the same role; hashing takes a while."""
    session = find_living_session(request, request[HOUSE])
    return session is not None and session.person.role == staff_of(request).role
