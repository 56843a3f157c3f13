"""Argon2id: hashing and comparing passwords, one at a time (docs/security.md, S7, S31)."""

import asyncio
from functools import cached_property

import argon2
from aiohttp import web

from appliance.errors import RateLimited
from appliance.model.staff import PASSWORD_MAX

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
            return await asyncio.get_running_loop().run_in_executor(
                None, self._hasher.hash, password
            )

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
                return await asyncio.get_running_loop().run_in_executor(
                    None, self._compare, stored, password
                )
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
