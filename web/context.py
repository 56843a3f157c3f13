"""What the composition root hands to handlers, beside the environment of each request."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass

from aiohttp import web

from appliance.environment import Environment
from appliance.mail.postman import Postman
from appliance.webhooks.dispatcher import Dispatcher
from web.authentication import Gate


class Turns:
    """Lets requests with one idempotency key take turns (docs/decisions/idempotency.md)."""

    def __init__(self) -> None:
        self._busy: dict[Hashable, asyncio.Future[None]] = {}

    def take(self, name: Hashable) -> "_Turn":
        """`async with` it: waits until nobody else holds `name`, then holds it."""
        return _Turn(self._busy, name)


class _Turn:
    __slots__ = ("_busy", "_name")

    def __init__(self, busy: dict[Hashable, asyncio.Future[None]], name: Hashable) -> None:
        self._busy = busy
        self._name = name

    async def __aenter__(self) -> None:
        while (before := self._busy.get(self._name)) is not None:
            await asyncio.wait([before])
        self._busy[self._name] = asyncio.get_running_loop().create_future()

    async def __aexit__(self, *_: object) -> None:
        self._busy.pop(self._name).set_result(None)


@dataclass(frozen=True, slots=True)
class Services:
    """What works for one environment while the application runs."""

    environment: Environment
    gate: Gate
    turns: Turns
    postman: Postman
    dispatcher: Dispatcher


SERVICES: web.RequestKey[Services] = web.RequestKey("services", Services)
