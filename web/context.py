"""Objects that the composition root passes to handlers, in addition to the environment."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from appliance.email.worker import EmailWorker
from appliance.environment import Environment
from appliance.webhooks.dispatcher import Dispatcher
from web.api.authentication import Gate


class Turns:
    """Serialises requests with the same idempotency key (docs/decisions/idempotency.md)."""

    def __init__(self) -> None:
        self._busy: dict[Hashable, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def take(self, name: Hashable) -> AsyncIterator[None]:
        """Wait until `name` is free, and hold it during the block."""
        while (before := self._busy.get(name)) is not None:
            await asyncio.wait([before])
        self._busy[name] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            self._busy.pop(name).set_result(None)


@dataclass(frozen=True, slots=True)
class Services:
    """The services of one environment while the application runs."""

    environment: Environment
    gate: Gate
    turns: Turns
    email_worker: EmailWorker
    dispatcher: Dispatcher


SERVICES: web.RequestKey[Services] = web.RequestKey("services", Services)
