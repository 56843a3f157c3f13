"""Access checks for portal pages, and the hashing and verification of passwords."""

import asyncio
import os
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, wraps
from itertools import combinations
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from aiohttp import web
from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from appliance.core.errors import ApiError, NotFound, RateLimited, StaffRoleMissing, Unavailable
from appliance.core.text import words
from appliance.core.tokens import hash_token
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT, RECHECK_AUTHORISATION, is_from_our_page
from appliance.reservations.request import parse_uuid
from appliance.staff.model import PASSWORD_MAX, PASSWORD_MIN, StaffMember
from appliance.staff.sign_in import (
    Session,
    begin_sign_in,
    find_session,
    right_password,
    touch_session,
)
from web.guest.responses import page
from web.middleware import SECURE, SERVICES, Services
from web.portal.cookies import LIVE, SESSION, device_secret, session_secret
from web.portal.forms import FORM, Form, read_form
from web.portal.navigation import SAFE, FormHandler, Handler, PortalRoute, nearest_page
from web.portal.responses import REFUSED, Declined, language_of, problem_page, see_other

T = TypeVar("T")


def guarded(route: PortalRoute, services: Services, live: Environment) -> Handler:
    """Wrap the route's handler in the access check.

    `live` is the live environment, which stores all staff accounts.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        request[ENVIRONMENT] = services.environment
        request[SERVICES] = services
        request[LIVE] = live
        if not request.app[SECURE].is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        session = find_living_session(request, live)
        if session is None:
            return _redirect_to_sign_in(request)
        request[SESSION] = session
        try:
            is_safe = request.method in SAFE or is_from_our_page(request, live.links.base)
            if not is_safe or not session.person.may(route.role):
                raise StaffRoleMissing(role=route.role)
            request[RECHECK_AUTHORISATION] = lambda later: _recheck(later, live, route.role)
            await _record_use(live, session)
            if request.method in SAFE:
                return await route.handler(request)
            return await _handle_form(request, route)
        except (ApiError, Declined) as refusal:
            return problem_page(request, refusal)

    return handle


async def _handle_form(request: web.Request, route: PortalRoute) -> web.StreamResponse:
    """Read the form and run the handler. If it fails, show the form's page with the error."""
    form = request[FORM] = await read_form(request, takes_files=route.takes_files)
    try:
        return await route.handler(request, form)
    except StaffRoleMissing:
        raise
    except (ApiError, Declined) as refusal:
        if route.page is None or "HX-Request" in request.headers:
            raise  # htmx keeps the entered values in the page
        request[REFUSED] = refusal
        shown = await route.page(request)
        if shown.status != refusal.status:  # a redirect, which would lose the error
            raise
        return shown


def find_living_session(request: web.Request, live: Environment) -> Session | None:
    """Return the valid session that the request's cookie identifies, or None."""
    secret = session_secret(request)
    if secret is None:
        return None
    session = live.database.look_up(find_session, hash_token(secret))
    if session is None or session.is_over(live.database.clock.now()):
        return None
    return session


def staff_of(request: web.Request) -> StaffMember:
    """Return the signed-in staff member."""
    return request[SESSION].person


def actor_of(request: web.Request) -> str:
    """Return the `actor` that identifies the staff member in the history and the audit log."""
    return f"staff:{staff_of(request).id}"


async def write_as_staff(
    request: web.Request, action: Callable[..., T], *args: object, **kwargs: object
) -> T:
    """Run `action` in a transaction, with the signed-in staff member as `actor`."""
    database = request[ENVIRONMENT].database
    return await database.write(action, *args, actor=actor_of(request), **kwargs)


def runs(action: Callable[..., object], back: str, note: str = "saved") -> FormHandler:
    """Return a handler that runs `action` on the object in the URL path and redirects to `back`.

    `action` gets the object's id and the signed-in staff member as `actor`. `back` may contain
    `{id}`.
    """

    @wraps(action)
    async def handle(request: web.Request, _form: Form) -> web.StreamResponse:
        object_id = id_of(request)
        await write_as_staff(request, action, object_id)
        return see_other(request, back.format(id=object_id), note)

    return handle


def id_of(request: web.Request) -> str:
    """Return the id in the URL path. Raises NotFound if it is not a UUID."""
    found = parse_uuid(request.match_info["id"])
    if found is None:
        raise NotFound
    return found


def _recheck(request: web.Request, live: Environment, role: str) -> None:
    session = find_living_session(request, live)
    if session is None or not session.person.may(role):
        raise StaffRoleMissing(role=role)


async def _record_use(live: Environment, session: Session) -> None:
    """Record when the session was last used, at most once a minute."""
    if session.is_due_for_touch(live.database.clock.now()):
        with suppress(Unavailable):  # pages must stay readable when the disk is full
            await live.database.write(touch_session, session.id)


def _redirect_to_sign_in(request: web.Request) -> web.StreamResponse:
    """Redirect to the sign-in page, with the requested page in `?next=`."""
    query = {"next": _shown_page(request)}
    if request.method not in SAFE and nearest_page(request) != "/portal":
        query["note"] = "not-saved"  # signing out and choosing a language store no input
    target = f"/portal/sign-in?{urlencode(query, safe='/?')}"
    if "HX-Request" in request.headers:  # redirect the whole page, not just the updated part
        return web.Response(status=401, headers={"HX-Redirect": target})
    return web.Response(status=303, headers={"Location": target})


def _shown_page(request: web.Request) -> str:
    """Return the page to show after sign-in, with its query.

    For a part of a page and for a form, this is the page that contains it, if a script names that
    page. Otherwise, it is the nearest page above the form.
    """
    shown = urlsplit(request.headers.get("HX-Current-URL", ""))
    page = nearest_page(request)
    is_part = "HX-Request" in request.headers and request.method in SAFE
    if is_part and shown.path.startswith("/portal/"):
        return f"{shown.path}?{shown.query}" if shown.query else shown.path
    if request.method in SAFE:
        return str(request.rel_url.without_query_params("part"))
    return f"{page}?{shown.query}" if shown.path == page and shown.query else page


# Maximum number of queued password checks for browsers that are unknown to the account. Ten checks
# take one or two seconds.
_UNKNOWN_BROWSERS_MAX = 10


class Passwords:
    """Hashes passwords one at a time, because each hash needs 64 MiB and a whole CPU core.

    Computers spell é in one character or in two, so a password is first normalised (NFKC, as NIST
    SP 800-63B says).
    """

    def __init__(self) -> None:
        # The second recommended option in RFC 9106, which uses 64 MiB.
        self.cost: dict[str, Any] = {"iterations": 3, "lanes": 4, "memory_cost": 65_536}
        self._lock = asyncio.Lock()
        self._unknown_browsers = 0

    async def hash(self, password: str) -> str:
        """Return the password's hash in argon2's encoded form."""
        async with self._lock:
            return await asyncio.to_thread(self._hash, normalise_password(password))

    async def matches(
        self, stored: str | None, password: str, *, is_stranger: bool = False
    ) -> bool:
        """Return whether `password` matches the hash `stored`.

        If `stored` is None (unknown name), the check takes just as long and returns False. A
        password is also compared as it was typed, because `stored` may come from elsewhere.
        `is_stranger` is true if the account has never signed in with this browser. Raises
        RateLimited if ten checks for such browsers are already queued, because password guessing
        must not delay known browsers.
        """
        if is_stranger and self._unknown_browsers >= _UNKNOWN_BROWSERS_MAX:
            raise RateLimited
        self._unknown_browsers += is_stranger
        try:
            async with self._lock:
                return await asyncio.to_thread(self._compare, stored, password)
        finally:
            self._unknown_browsers -= is_stranger

    def _compare(self, stored: str | None, password: str) -> bool:
        for spelling in dict.fromkeys((normalise_password(password), password)):
            tried = spelling[:PASSWORD_MAX].encode()
            with suppress(InvalidKey):
                Argon2id.verify_phc_encoded(tried, stored or self._unused_hash)
                return stored is not None
        return False

    def _hash(self, password: str) -> str:
        derivation = Argon2id(salt=os.urandom(16), length=32, **self.cost)
        return derivation.derive_phc_encoded(password.encode())

    @cached_property
    def _unused_hash(self) -> str:
        return self._hash("nobody's")


PASSWORDS = web.AppKey("passwords", Passwords)
_SAFE = 3  # zxcvbn's minimum score: more than 10^8 guesses
_JUDGED_MAX = 72  # maximum number of characters for zxcvbn
_JOINED_MAX = 12  # words
# Words that somebody who knows the venue would try first, and that zxcvbn does not know.
_COMMON_HERE = """
    reservation restaurant terrasse bienvenue motdepasse bonjour administrateur azerty maroc morocco
    casablanca marrakech rabat tanger agadir fes meknes essaouira chefchaouen janvier fevrier mars
    avril mai juin juillet aout septembre octobre novembre decembre
"""


def normalise_password(password: str) -> str:
    """Return the password in the spelling that is hashed."""
    return unicodedata.normalize("NFKC", password)


def is_guessable(password: str, names: tuple[str, ...]) -> bool:
    """Whether an attacker would try `password` early.

    `names` are texts whose words an attacker knows, such as the names of the account and the venue.
    """
    from zxcvbn import zxcvbn  # noqa: PLC0415 - its lists take 15 MB and are rarely needed

    known = [part for name in ("venuebox", *names, _COMMON_HERE) for part in _spellings(name)]
    judged = zxcvbn(normalise_password(password)[:_JUDGED_MAX], user_inputs=known)
    return int(judged["score"]) < _SAFE


def _spellings(name: str) -> Iterator[str]:
    """Yield the words of `name` with and without accents, and a short one's words joined."""
    for parts in (words(name), name.casefold().split()):
        yield from parts
        if len(parts) <= _JOINED_MAX:
            yield from (sign.join(parts) for sign in " -_.")
            for begin, end in combinations(range(len(parts) + 1), 2):
                yield "".join(parts[begin:end])


async def hash_new_password(request: web.Request, password: str, names: tuple[str, ...]) -> str:
    """Return the password's hash.

    Raises Declined if the password is too short, too long or easy to guess, for example because it
    consists of one of `names` and a few digits.
    """
    _ = language_of(request).gettext
    limits = {"shortest": PASSWORD_MIN, "longest": PASSWORD_MAX}
    if not PASSWORD_MIN <= len(normalise_password(password)) <= PASSWORD_MAX:
        raise Declined(_("Please choose %(shortest)s to %(longest)s characters.", **limits))
    if await asyncio.to_thread(is_guessable, password, names):
        raise Declined(_("This password is too easy to guess. Please choose another one."))
    return await request.app[PASSWORDS].hash(password)


async def reauthenticate(request: web.Request, password: str) -> None:
    """Check the signed-in staff member's password. This counts as a sign-in attempt.

    Raises Declined if the password is wrong.
    """
    live, person = request[LIVE], staff_of(request)
    attempt = await live.database.write(begin_sign_in, person.name, device_secret(request))
    matches = await request.app[PASSWORDS].matches(attempt.password_hash, password)
    if matches and await live.database.write(right_password, attempt):
        # The session may have ended during the password check.
        session = find_living_session(request, live)
        if session is not None and session.person.role == person.role:
            return
    sentence = language_of(request).gettext("The current password is wrong.")
    raise Declined(sentence, field="password")
