"""The sandbox's addresses: a page for people, and the same for programs."""

from typing import Any

from aiohttp import web

from appliance.clock import Clock
from appliance.errors import MalformedRequest, NotFound, ValidationError, field_invalid
from appliance.rate_limit import RateLimit
from terminal_bridge.body import read_body, read_object
from terminal_bridge.context import ENVIRONMENT
from web.docs import page_addresses
from web.middleware import Handler
from web.names.secure import SECURE
from web.public_page import public_page, wants_page
from web.routes import Route
from web.sandbox.receivers import KEPT_DELIVERIES, MODES
from web.sandbox.sandbox import Sandbox
from web.wire import answer

_DIGITS_MAX = 15
_REQUESTS_A_MINUTE = 240  # of one address: a page asks every second


class SandboxPages:
    """Handlers around one sandbox."""

    def __init__(self, sandbox: Sandbox, clock: Clock) -> None:
        self._sandbox = sandbox
        self._limit = RateLimit(clock, _REQUESTS_A_MINUTE)

    async def show(self, request: web.Request) -> web.Response:
        """`GET /test`: the page, for browsers."""
        if not wants_page(request):
            raise NotFound
        values = {**page_addresses(request), "kept": KEPT_DELIVERIES}
        return public_page(request, "sandbox.html", values)

    async def create(self, request: web.Request) -> web.Response:
        """`POST /test/echo`: a fresh receiver for a test key. Registering it stays its own call."""
        token = self._sandbox.new_token()
        base = request[ENVIRONMENT].links.base
        described = {"url": self._sandbox.url(token), "token": token, "watch": f"{base}#{token}"}
        return answer(described, 201)

    async def receive(self, request: web.Request) -> web.StreamResponse:
        """`POST /test/echo/{token}`: what the box delivers, or anybody who knows the token."""
        token = self._token_of(request)
        raw = await read_body(request)
        if raw is None:
            raise MalformedRequest
        return await self._sandbox.receive(request, token, raw)

    async def tell(self, request: web.Request) -> web.Response:
        """`GET /test/echo/{token}`: what arrived after `?after=`, newest first."""
        token = self._token_of(request)
        receiver, after = self._sandbox.find(token), _after(request)
        if wants_page(request):
            page = f"{request[ENVIRONMENT].prefix}#{token}"
            return web.Response(status=303, headers={"Location": page})
        told: dict[str, Any] = {
            "url": self._sandbox.url(token),
            "endpoints": [
                {"id": endpoint.id, "events": list(endpoint.events)}
                for endpoint in self._sandbox.endpoints_of(token)
            ],
            "mode": receiver.mode,
            "received": receiver.received,
            "items": [echo for echo, _size in receiver.echoes if echo["number"] > after],
        }
        return answer(told)

    async def switch(self, request: web.Request) -> web.Response:
        """`PUT /test/echo/{token}`: how it answers from now on."""
        receiver = self._sandbox.find(self._token_of(request))
        mode = (await read_object(request)).get("mode")
        if not isinstance(mode, str) or mode not in MODES:
            raise field_invalid("mode", "among", allowed=", ".join(MODES))
        receiver.mode = mode
        return answer({"mode": mode})

    def _token_of(self, request: web.Request) -> str:
        """The token of a receiver that was made here; NotFound, or RateLimited for its caller."""
        self._limit.spend(request.app[SECURE].caller_of(request))
        token = request.match_info["token"]
        self._sandbox.find(token)
        return token

    @property
    def open_routes(self) -> tuple[tuple[str, str, Handler], ...]:
        """What needs no key: the page, and whatever carries a receiver's token."""
        return (
            ("GET", "/test", self.show),
            ("GET", "/test/echo/{token}", self.tell),
            ("PUT", "/test/echo/{token}", self.switch),
            ("POST", "/test/echo/{token}", self.receive),
        )

    @property
    def key_routes(self) -> tuple[Route, ...]:
        """What needs a test key, relative to the environment's base."""
        return (Route("POST", "/echo", "webhooks:manage", self.create, "createEchoReceiver"),)


def _after(request: web.Request) -> int:
    text = request.query.get("after", "0")
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX):
        raise ValidationError(
            field="after", rule_fr="after : nombre attendu.", rule="after: number expected."
        )
    return int(text)
