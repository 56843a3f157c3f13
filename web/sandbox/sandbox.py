"""Echo receivers: a partner's stand-in in the test environment that shows what arrived.

A token is an id and its MAC, so no stranger can invent one to fill the memory, and a receiver is
found again after a restart with nothing but its endpoint's row. Only the test environment knows
them: in live the guard refuses the box's own address as ever.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from aiohttp import web

from appliance.clock import Clock, format_instant
from appliance.environment import Environment
from appliance.errors import NotFound
from appliance.model.endpoint import Endpoint
from appliance.store.delivery_log import count_attempts
from appliance.store.endpoints import list_active_endpoints
from appliance.tokens import Tokens
from appliance.webhooks.outside import Inside, Outside, make_outside
from web.sandbox.inside import InsideServer
from web.sandbox.receivers import (
    BODY_SHOWN,
    MODES,
    SLOW_SECONDS,
    EchoReceiver,
    EchoReceivers,
    verify,
)

_HEADERS_KEPT, _HEADER_KEPT = 50, 1024  # deliveries have ten; others need not fill the memory


class Sandbox:
    """The echo receivers of one box."""

    def __init__(self, test: Environment, clock: Clock, tokens: Tokens) -> None:
        self._test = test
        self._clock = clock
        self._tokens = tokens
        self._receivers = EchoReceivers()
        self._server = InsideServer(self.receive)
        self._base = f"{test.links.base}/echo/"

    def outside_of(self, environment: Environment) -> Outside:
        """The world as a dispatcher sees it: test finds echo receivers in it, live does not."""
        outside = make_outside(environment.settings.webhooks)
        if environment.name != "test":
            return outside
        return replace(outside, inside=Inside(self._is_ours, self._server.connect))

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """Hang up what is left when the application stops."""
        yield
        await self._server.close()

    def new_token(self) -> str:
        """The token of a fresh receiver. Nothing is kept of it until it receives."""
        return self._test.keyring.echo_token(self._tokens.new_id(self._clock.now()))

    def url(self, token: str) -> str:
        """Where it receives: the URL to register."""
        return self._base + token

    def find(self, token: str) -> EchoReceiver:
        """What is remembered of a receiver; NotFound for a token that was not made here."""
        receiver_id = self._test.keyring.read_echo_token(token)
        if receiver_id is None:
            raise NotFound
        return self._receivers.get(receiver_id)

    def endpoints_of(self, token: str) -> Sequence[Endpoint]:
        """The active endpoints that send to it."""
        active = self._test.database.peek(list_active_endpoints)
        return [endpoint for endpoint in active if endpoint.url == self.url(token)]

    async def receive(self, request: web.BaseRequest, token: str, raw: bytes) -> web.StreamResponse:
        """Note a request, whose body is `raw`, and answer it as its partner switched."""
        receiver, now = self.find(token), self._clock.now()
        headers, mode = request.headers, receiver.mode
        delivery = headers.get("X-Service-Delivery", "")
        receiver.note(
            receivedAt=format_instant(now),
            event=headers.get("X-Service-Event", ""),
            delivery=delivery,
            attempt=self._attempt(delivery, token),  # None: it is no delivery of this box
            headers=[
                [part.decode("utf-8", "backslashreplace")[:_HEADER_KEPT] for part in header]
                for header in request.raw_headers[:_HEADERS_KEPT]
            ],
            body=raw[:BODY_SHOWN].decode("utf-8", "backslashreplace"),
            bodyBytes=len(raw),
            signature=verify(
                self._secrets(token), headers.get("X-Service-Signature", ""), raw, now
            ),
            answer={"mode": mode, "status": MODES[mode]},
        )
        if mode == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        return web.Response(status=MODES[mode])

    def _secrets(self, token: str) -> list[str]:
        keyring, now = self._test.keyring, self._clock.now()
        wrapped = []
        for each in self.endpoints_of(token):
            wrapped.append(each.secret)
            if each.previous_secret is not None and (each.previous_secret_expires_at or 0) > now:
                wrapped.append(each.previous_secret)
        return [keyring.unwrap(secret).decode() for secret in wrapped]

    def _attempt(self, delivery_id: str, token: str) -> int | None:
        ours = {endpoint.id for endpoint in self.endpoints_of(token)}

        tried = self._test.database.peek(count_attempts, delivery_id, ours)
        return None if tried is None else tried + 1

    def _is_ours(self, url: str) -> bool:
        """Whether `url` is letter by letter that of an echo receiver."""
        token = url.removeprefix(self._base)
        return url == self._base + token and self._test.keyring.read_echo_token(token) is not None
