"""The test environment's sandbox: echo receivers that show a partner each webhook delivery.

Partners register a receiver like any other endpoint (interface, sections 6.1 and 6.3). Receivers
are kept in memory only. A receiver's token contains an id and a MAC of this id. Strangers therefore
cannot invent tokens to fill the memory, and tokens stay valid after a restart. Only the test
environment delivers to receivers. In the live environment, the URL policy rejects the box's own
address.
"""

import asyncio
import hmac
import json
import socket
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from appliance.clock import BoxClock, format_instant
from appliance.core.errors import MalformedRequest, NotFound, field_invalid, not_among
from appliance.core.tokens import Tokens
from appliance.environment import Environment
from appliance.http.rate_limit import RateLimit
from appliance.http.request import (
    CALLER_OF,
    ENVIRONMENT,
    Handler,
    answer,
    read_body,
    read_object,
    wants_page,
)
from appliance.webhooks.dispatcher import Dependencies, Inside, make_dependencies
from appliance.webhooks.endpoints import Endpoint, list_active_endpoints
from appliance.webhooks.url_policy import IpAddress
from web.docs import addresses
from web.rendering import public_page
from web.routes import Route

KEPT_DELIVERIES = 50
KEPT_BYTES = 256 * 1024  # maximum size of the stored JSON per receiver
KEPT_RECEIVERS = 32
BODY_SHOWN = 16 * 1024
# The HTTP status returned in each mode. The mode `slow` first waits SLOW_SECONDS.
MODES = {"normal": 204, "slow": 204, "fail": 500}
SLOW_SECONDS = 5.0
# Maximum number of headers stored, and maximum length of a name or value. Deliveries have ten
# headers.
_HEADERS_KEPT, _HEADER_KEPT = 50, 1024
_REQUESTS_A_MINUTE = 240  # limit per client address; a page sends one request per second
_TOLERANCE_SECONDS = 300
_DIGITS_MAX = 15
_HANG_UP_SECONDS = 0.1  # not 0, which aiohttp interprets as no time limit


def verify(secrets: Sequence[str], header: str, raw: bytes, now_ms: int) -> dict[str, Any]:
    """Check the `X-Service-Signature` header for the body `raw` against each secret.

    Return the verdict ("valid", "missing", "too old" or "wrong"), and the values that it is based
    on. `ageSeconds` is negative if the sender's clock is ahead. `expected` contains one digest
    for each secret.
    """
    parts = [part.strip().partition("=") for part in header.split(",")]
    given = [value for name, _, value in parts if name == "v1"]
    stamp = next((value for name, _, value in parts if name == "t" and _is_number(value)), None)
    if stamp is None:
        return {"verdict": "missing", "t": None, "ageSeconds": None, "expected": [], "given": given}
    age = now_ms // 1000 - int(stamp)
    signed = stamp.encode() + b"." + raw
    expected = [hmac.digest(secret.encode(), signed, "sha256").hex() for secret in secrets]
    verdict = "valid" if set(expected) & set(given) else "wrong"
    if abs(age) > _TOLERANCE_SECONDS:
        verdict = "too old"
    return {"verdict": verdict, "t": int(stamp), "ageSeconds": age, "expected": expected,
            "given": given}  # fmt: skip


def _shown(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")[:_HEADER_KEPT]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX


@dataclass(slots=True)
class EchoReceiver:
    """An echo receiver. `echoes` are pairs of delivery and size in bytes, newest first."""

    mode: str = "normal"
    received: int = 0
    echoes: deque[tuple[dict[str, Any], int]] = field(
        default_factory=lambda: deque(maxlen=KEPT_DELIVERIES)
    )

    def add(self, **delivery: Any) -> None:
        """Store a delivery. Drop the oldest deliveries if the total exceeds KEPT_BYTES."""
        self.received += 1
        delivery["number"] = self.received
        size = len(json.dumps(delivery, ensure_ascii=False).encode())
        self.echoes.appendleft((delivery, size))
        while sum(size for _, size in self.echoes) > KEPT_BYTES:
            self.echoes.pop()


class Sandbox:
    """The box's echo receivers and their HTTP handlers.

    The box delivers to its echo receivers through socket pairs instead of network connections.
    """

    def __init__(self, test: Environment, clock: BoxClock, tokens: Tokens) -> None:
        self._test = test
        self._clock = clock
        self._tokens = tokens
        self._limit = RateLimit(clock, _REQUESTS_A_MINUTE)
        self._receivers: OrderedDict[str, EchoReceiver] = OrderedDict()
        self._server: web.Server | None = None
        self._base = f"{test.links.base}/echo/"

    def dependencies_of(self, environment: Environment) -> Dependencies:
        """Return the dispatcher's dependencies.

        In the test environment, they include the echo receivers.
        """
        dependencies = make_dependencies(environment.settings.webhooks, self._clock)
        if environment.name != "test":
            return dependencies
        return replace(dependencies, inside=Inside(self._is_ours, self._connect))

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """Close the socket pairs when the application stops."""
        yield
        if self._server is not None:
            await self._server.shutdown(_HANG_UP_SECONDS)

    def new_token(self) -> str:
        """Return a new receiver's token. Nothing is stored until the token is used."""
        return self._test.keyring.echo_token(self._tokens.new_id(self._clock.now()))

    def url(self, token: str) -> str:
        """Return the endpoint URL of the receiver with this token."""
        return self._base + token

    async def show(self, request: web.Request) -> web.Response:
        """`GET /test`: show the sandbox page."""
        values = {**addresses(request), "kept": KEPT_DELIVERIES}
        return public_page(request, "sandbox.html", values)

    async def create(self, request: web.Request) -> web.Response:
        """`POST /test/echo`: create a receiver. Requires a test key.

        To use the receiver, register its URL as an endpoint.
        """
        token = self.new_token()
        watch = f"{request[ENVIRONMENT].links.base}#{token}"
        return answer({"url": self.url(token), "token": token, "watch": watch}, 201)

    async def receive(self, request: web.Request) -> web.StreamResponse:
        """`POST /test/echo/{token}`: record the request, which is usually a webhook delivery."""
        token = self._token_of(request)
        raw = await read_body(request)
        if raw is None:
            raise MalformedRequest
        return await self._receive(request, token, raw)

    async def list_deliveries(self, request: web.Request) -> web.Response:
        """`GET /test/echo/{token}`: list deliveries with a number above `?after=`, newest first.

        Browsers are redirected to the sandbox page.
        """
        token = self._token_of(request)
        receiver, after = self._find(token), request.query.get("after", "0")
        if not _is_number(after):
            raise field_invalid("after", "number expected.")
        if wants_page(request):
            page = f"{request[ENVIRONMENT].prefix}#{token}"
            return web.Response(status=303, headers={"Location": page})
        endpoints = [
            {"id": endpoint.id, "events": list(endpoint.events)}
            for endpoint in self._endpoints_of(token)
        ]
        items = [echo for echo, _size in receiver.echoes if echo["number"] > int(after)]
        return answer(
            {
                "url": self.url(token),
                "endpoints": endpoints,
                "mode": receiver.mode,
                "received": receiver.received,
                "items": items,
            }
        )

    async def set_mode(self, request: web.Request) -> web.Response:
        """`PUT /test/echo/{token}`: set how the receiver responds from now on."""
        receiver = self._find(self._token_of(request))
        mode = (await read_object(request)).get("mode")
        if not isinstance(mode, str) or mode not in MODES:
            raise not_among("mode", MODES)
        receiver.mode = mode
        return answer({"mode": mode})

    @property
    def open_routes(self) -> tuple[tuple[str, str, Handler], ...]:
        """Return the routes that need no key: the page, and the routes with a receiver's token."""
        return (
            ("GET", "/test", self.show),
            ("GET", "/test/echo/{token}", self.list_deliveries),
            ("PUT", "/test/echo/{token}", self.set_mode),
            ("POST", "/test/echo/{token}", self.receive),
        )

    @property
    def key_routes(self) -> tuple[Route, ...]:
        """Return the routes that need a test key, relative to the environment's base."""
        return (Route("POST", "/echo", "webhooks:manage", self.create, "createEchoReceiver"),)

    def _token_of(self, request: web.Request) -> str:
        """Return the token in the path.

        Raises NotFound if this box did not issue it, and RateLimited after too many requests.
        """
        self._limit.spend(request.app[CALLER_OF](request))
        token = request.match_info["token"]
        self._find(token)
        return token

    def _find(self, token: str) -> EchoReceiver:
        """Return the receiver with this token, and create it if necessary.

        If there are then more than KEPT_RECEIVERS, drop the least recently used receiver. Raises
        NotFound if this box did not issue the token.
        """
        receiver_id = self._test.keyring.read_echo_token(token)
        if receiver_id is None:
            raise NotFound
        receiver = self._receivers.setdefault(receiver_id, EchoReceiver())
        self._receivers.move_to_end(receiver_id)
        if len(self._receivers) > KEPT_RECEIVERS:
            self._receivers.popitem(last=False)
        return receiver

    async def _receive(
        self, request: web.BaseRequest, token: str, raw: bytes
    ) -> web.StreamResponse:
        """Record a request with the body `raw`. Return the response for the receiver's mode."""
        receiver, now = self._find(token), self._clock.now()
        # `request.headers` may contain text that cannot be encoded.
        raw_headers = request.raw_headers[:_HEADERS_KEPT]
        shown = [(_shown(name), _shown(value)) for name, value in raw_headers]
        headers, mode = {name.lower(): value for name, value in shown}, receiver.mode
        attempt = headers.get("x-service-attempt", "")
        endpoints = self._endpoints_of(token)
        signature = headers.get("x-service-signature", "")
        receiver.add(
            receivedAt=format_instant(now),
            event=headers.get("x-service-event", ""),
            delivery=headers.get("x-service-delivery", ""),
            attempt=int(attempt) if _is_number(attempt) else None,
            headers=shown,
            body=raw[:BODY_SHOWN].decode("utf-8", "backslashreplace"),
            bodyBytes=len(raw),
            signature=verify(self._secrets(endpoints), signature, raw, now),
            answer={"mode": mode, "status": MODES[mode]},
        )
        if mode == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        return web.Response(status=MODES[mode])

    def _endpoints_of(self, token: str) -> list[Endpoint]:
        """Return the active endpoints with the URL of the echo receiver `token`."""
        active = self._test.database.peek(list_active_endpoints)
        return [endpoint for endpoint in active if endpoint.url == self.url(token)]

    def _secrets(self, endpoints: Sequence[Endpoint]) -> list[str]:
        keyring, now = self._test.keyring, self._clock.now()
        wrapped = []
        for endpoint in endpoints:
            wrapped.append(endpoint.secret)
            if endpoint.previous_secret and (endpoint.previous_secret_expires_at or 0) > now:
                wrapped.append(endpoint.previous_secret)
        return [keyring.unwrap(secret).decode() for secret in wrapped]

    def _is_ours(self, url: str) -> bool:
        """Return whether `url` is an echo receiver's URL."""
        token = url.removeprefix(self._base)
        return url == self.url(token) and self._test.keyring.read_echo_token(token) is not None

    async def _connect(self, _addresses: Sequence[IpAddress], _port: int) -> socket.socket:
        """Return one end of a new socket pair. The other end is connected to the receivers."""
        if self._server is None:
            self._server = web.Server(self._serve, access_log=None)
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)  # noqa: FBT003 - the library's API
        await asyncio.get_running_loop().connect_accepted_socket(self._server, theirs)
        return ours

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        token = request.path.rpartition("/")[2]
        return await self._receive(request, token, await request.read())
