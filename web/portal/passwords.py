"""Passwords: hashed one at a time with Argon2id, judged when new, asked for again.

(docs/security.md, S7, S31).
"""

import asyncio
from functools import cached_property

import argon2
from aiohttp import web

from appliance.actions.sign_in import begin_sign_in, right_password
from appliance.errors import RateLimited
from appliance.model.guessable import is_guessable
from appliance.model.staff import PASSWORD_MAX, PASSWORD_MIN
from web.portal.answer import Declined, language_of
from web.portal.context import HOUSE
from web.portal.guard import find_living_session, staff_of
from web.portal.session_cookie import device_secret

_MOST_STRANGERS = 10  # who wait at once: a second or two for whoever comes after them


class Passwords:
    """Each hash takes 64 MiB and a processor for a while, so they queue."""

    def __init__(self) -> None:
        self._hasher = argon2.PasswordHasher()  # RFC 9106's second choice: 64 MiB
        self._one = asyncio.Lock()
        self._strangers = 0

    async def hash(self, password: str) -> str:
        """The standard encoding of a fresh hash."""
        async with self._one:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def matches(
        self, stored: str | None, password: str, *, is_stranger: bool = False
    ) -> bool:
        """Whether it is the password; None, for somebody unknown, takes as long to say no.

        RateLimited for a stranger when many strangers wait already: those whom the box knows
        do not wait behind all who guess.
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
    """Its hash; Declined when it will not do. `names` are the person's and the venue's."""
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
    """Declined unless `password` is the signed-in person's own. Guesses count as at sign-in."""
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
    """Still, and in the same role: comparing a password takes a while."""
    session = find_living_session(request, request[HOUSE])
    return session is not None and session.person.role == staff_of(request).role
