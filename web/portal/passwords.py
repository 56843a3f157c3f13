"""Argon2id: hashing and comparing passwords, one at a time (reliability.md S7, S31)."""

import asyncio
from functools import cached_property

import argon2
from aiohttp import web

from appliance.model.staff import PASSWORD_MAX


class Passwords:
    """Each hash takes 64 MiB and a processor for a while, so they queue."""

    def __init__(self) -> None:
        self._hasher = argon2.PasswordHasher()  # RFC 9106's second choice: 64 MiB
        self._one = asyncio.Lock()

    async def hash(self, password: str) -> str:
        """The standard encoding of a fresh hash."""
        async with self._one:
            return await asyncio.get_running_loop().run_in_executor(
                None, self._hasher.hash, password
            )

    async def matches(self, stored: str | None, password: str) -> bool:
        """Whether it is the password; None, for somebody unknown, takes as long to say no."""
        async with self._one:
            return await asyncio.get_running_loop().run_in_executor(
                None, self._compare, stored, password
            )

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
