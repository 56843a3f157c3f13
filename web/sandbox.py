"""The test environment's sandbox: echo receivers that show each delivery to a partner.

Receivers are kept in memory only. The steps are those of a partner (interface, 6.1 and 6.3). A
token is an id and its MAC: strangers cannot invent one to fill the memory, and after a restart
the endpoint's row is enough to find a receiver again. Only the test environment has them; in live
the guard refuses the box's own address as ever.
"""

import asyncio
import hmac
import json
import socket
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from appliance.clock import Clock, format_instant
from appliance.core.errors import MalformedRequest, NotFound, ValidationError, field_invalid
from appliance.core.tokens import Tokens
from appliance.environment import Environment
from appliance.http.rate_limit import RateLimit
from appliance.http.request import ENVIRONMENT, Handler, answer, read_body, read_object, wants_page
from appliance.webhooks.delivery_log import count_attempts
from appliance.webhooks.dependencies import Dependencies, Inside, make_dependencies
from appliance.webhooks.endpoints import Endpoint, list_active_endpoints
from appliance.webhooks.url_policy import IpAddress
from web.docs import page_addresses
from web.middleware import SECURE
from web.rendering import public_page
from web.routes import Route

KEPT_DELIVERIES = 50
KEPT_BYTES = 256 * 1024  # per receiver, as JSON
KEPT_RECEIVERS = 32
BODY_SHOWN = 16 * 1024
# The HTTP status of each mode; `slow` waits SLOW_SECONDS first.
MODES = {"normal": 204, "slow": 204, "fail": 500}
SLOW_SECONDS = 5.0
_TOLERANCE_SECONDS = 300
_DIGITS_MAX = 15


def verify(secrets: Sequence[str], header: str, raw: bytes, now_ms: int) -> dict[str, Any]:
    """Check the `X-Service-Signature` of a raw body against each of `secrets`.

    Return the steps and the verdict: `valid`, `missing`, `too old` or `wrong`. The age (s) is
    negative if the sender's clock is ahead; `expected` has one digest per secret.
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
    return {
        "verdict": verdict,
        "t": int(stamp),
        "ageSeconds": age,
        "expected": expected,
        "given": given,
    }


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX


@dataclass(slots=True)
class EchoReceiver:
    """An echo receiver: its mode, and (delivery, size in bytes), newest first."""

    mode: str = "normal"
    received: int = 0
    echoes: deque[tuple[dict[str, Any], int]] = field(
        default_factory=lambda: deque(maxlen=KEPT_DELIVERIES)
    )

    def note(self, **told: Any) -> None:
        """Store a delivery; drop the oldest over the size limit."""
        self.received += 1
        told["number"] = self.received
        self.echoes.appendleft((told, len(json.dumps(told, ensure_ascii=False).encode())))
        while sum(size for _, size in self.echoes) > KEPT_BYTES:
            self.echoes.pop()


class EchoReceivers:
    """The recently used receivers; the least recently used one is dropped."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, EchoReceiver] = OrderedDict()

    def get(self, receiver_id: str) -> EchoReceiver:
        """Return the receiver of that id; a new one if it is unknown."""
        receiver = self._by_id.setdefault(receiver_id, EchoReceiver())
        self._by_id.move_to_end(receiver_id)
        if len(self._by_id) > KEPT_RECEIVERS:
            self._by_id.popitem(last=False)
        return receiver


_HANG_UP_SECONDS = 0.1  # aiohttp takes 0 as no limit

# Answers a request, given the receiver's token (the end of its path) and the body.
Receive = Callable[[web.BaseRequest, str, bytes], Awaitable[web.StreamResponse]]


class InsideServer:
    """An HTTP server without a listener; serves only the sockets made by `connect`."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._server: web.Server | None = None

    async def connect(self, _addresses: Sequence[IpAddress], _port: int) -> socket.socket:
        """Return one end of a new socket pair; the server serves the other end."""
        if self._server is None:
            self._server = web.Server(self._handle, access_log=None)
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)  # noqa: FBT003 - the library's API
        await asyncio.get_running_loop().connect_accepted_socket(self._server, theirs)
        return ours

    async def close(self) -> None:
        """Close all open connections."""
        if self._server is not None:
            await self._server.shutdown(_HANG_UP_SECONDS)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        token = request.path.rpartition("/")[2]
        return await self._receive(request, token, await request.read())


_HEADERS_KEPT, _HEADER_KEPT = 50, 1024  # deliveries have ten; more headers must not fill the memory


class Sandbox:
    """The echo receivers of one box."""

    def __init__(self, test: Environment, clock: Clock, tokens: Tokens) -> None:
        self._test = test
        self._clock = clock
        self._tokens = tokens
        self._receivers = EchoReceivers()
        self._server = InsideServer(self.receive)
        self._base = f"{test.links.base}/echo/"

    def outside_of(self, environment: Environment) -> Dependencies:
        """Return a dispatcher's dependencies; only those of test reach the echo receivers."""
        outside = make_dependencies(environment.settings.webhooks)
        if environment.name != "test":
            return outside
        return replace(outside, inside=Inside(self._is_ours, self._server.connect))

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """Close open connections when the application stops."""
        yield
        await self._server.close()

    def new_token(self) -> str:
        """Return the token of a new receiver; nothing is stored until it receives."""
        return self._test.keyring.echo_token(self._tokens.new_id(self._clock.now()))

    def url(self, token: str) -> str:
        """Return the URL to register for a token."""
        return self._base + token

    def find(self, token: str) -> EchoReceiver:
        """Return the receiver of a token. Raises NotFound for a token not issued here."""
        receiver_id = self._test.keyring.read_echo_token(token)
        if receiver_id is None:
            raise NotFound
        return self._receivers.get(receiver_id)

    def endpoints_of(self, token: str) -> Sequence[Endpoint]:
        """Return the active endpoints that send to this receiver."""
        active = self._test.database.peek(list_active_endpoints)
        return [endpoint for endpoint in active if endpoint.url == self.url(token)]

    async def receive(self, request: web.BaseRequest, token: str, raw: bytes) -> web.StreamResponse:
        """Record a request with the body `raw`, and answer it in the receiver's mode."""
        receiver, now = self.find(token), self._clock.now()
        headers, mode = request.headers, receiver.mode
        delivery = headers.get("X-Service-Delivery", "")
        receiver.note(
            receivedAt=format_instant(now),
            event=headers.get("X-Service-Event", ""),
            delivery=delivery,
            attempt=self._attempt(delivery, token),  # None: not a delivery of this box
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
        """Return whether `url` is exactly that of an echo receiver."""
        token = url.removeprefix(self._base)
        return url == self._base + token and self._test.keyring.read_echo_token(token) is not None


_REQUESTS_A_MINUTE = 240  # per address: a page polls every second


class SandboxPages:
    """Handlers of one sandbox."""

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
        """`POST /test/echo`: a new receiver for a test key. Registering it is a separate call."""
        token = self._sandbox.new_token()
        base = request[ENVIRONMENT].links.base
        described = {"url": self._sandbox.url(token), "token": token, "watch": f"{base}#{token}"}
        return answer(described, 201)

    async def receive(self, request: web.Request) -> web.StreamResponse:
        """`POST /test/echo/{token}`: receive a delivery, or any request with the token."""
        token = self._token_of(request)
        raw = await read_body(request)
        if raw is None:
            raise MalformedRequest
        return await self._sandbox.receive(request, token, raw)

    async def tell(self, request: web.Request) -> web.Response:
        """`GET /test/echo/{token}`: deliveries received after `?after=`, newest first."""
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
        """`PUT /test/echo/{token}`: set the mode of later answers."""
        receiver = self._sandbox.find(self._token_of(request))
        mode = (await read_object(request)).get("mode")
        if not isinstance(mode, str) or mode not in MODES:
            raise field_invalid("mode", "among", allowed=", ".join(MODES))
        receiver.mode = mode
        return answer({"mode": mode})

    def _token_of(self, request: web.Request) -> str:
        """Return the token in the path. Raises NotFound if not issued here, or RateLimited."""
        self._limit.spend(request.app[SECURE].caller_of(request))
        token = request.match_info["token"]
        self._sandbox.find(token)
        return token

    @property
    def open_routes(self) -> tuple[tuple[str, str, Handler], ...]:
        """Return the routes without a key: the page, and those with a receiver's token."""
        return (
            ("GET", "/test", self.show),
            ("GET", "/test/echo/{token}", self.tell),
            ("PUT", "/test/echo/{token}", self.switch),
            ("POST", "/test/echo/{token}", self.receive),
        )

    @property
    def key_routes(self) -> tuple[Route, ...]:
        """Return the routes that need a test key, relative to the environment's base."""
        return (Route("POST", "/echo", "webhooks:manage", self.create, "createEchoReceiver"),)


def _after(request: web.Request) -> int:
    text = request.query.get("after", "0")
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX):
        raise ValidationError(
            field="after", rule_fr="after : nombre attendu.", rule="after: number expected."
        )
    return int(text)
