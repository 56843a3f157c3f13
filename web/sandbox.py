"""The test environment's sandbox: echo receivers that show a partner each delivery."""

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
from appliance.http.json import answer, read_body, read_object
from appliance.http.rate_limit import RateLimit
from appliance.http.request import ENVIRONMENT
from appliance.webhooks.delivery_log import count_attempts
from appliance.webhooks.dependencies import Dependencies, Inside, make_dependencies
from appliance.webhooks.endpoints import Endpoint, list_active_endpoints
from appliance.webhooks.url_policy import IpAddress
from web.docs import page_addresses
from web.https_policy import SECURE
from web.middleware import Handler
from web.public_pages import public_page, wants_page
from web.routes import Route

KEPT_DELIVERIES = 50
KEPT_BYTES = 256 * 1024  # of each receiver, as it is told
KEPT_RECEIVERS = 32
BODY_SHOWN = 16 * 1024
# The status that each mode answers with; `slow` takes SLOW_SECONDS to do it.
MODES = {"normal": 204, "slow": 204, "fail": 500}
SLOW_SECONDS = 5.0
_TOLERANCE_SECONDS = 300
_DIGITS_MAX = 15


def verify(secrets: Sequence[str], header: str, raw: bytes, now_ms: int) -> dict[str, Any]:
    """Check the `X-Service-Signature` of a raw body; any of `secrets` may have signed it.

    The steps as they are told, and their verdict: `valid`, `missing`, `too old` or `wrong`. The
    age is negative when the sender's clock is ahead; `expected` has one digest for each secret.
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
    """One receiver: how it answers, and what came as it is told, newest first, with its size."""

    mode: str = "normal"
    received: int = 0
    echoes: deque[tuple[dict[str, Any], int]] = field(
        default_factory=lambda: deque(maxlen=KEPT_DELIVERIES)
    )

    def note(self, **told: Any) -> None:
        """Keep what came, and forget the oldest of what is too much."""
        self.received += 1
        told["number"] = self.received
        self.echoes.appendleft((told, len(json.dumps(told, ensure_ascii=False).encode())))
        while sum(size for _, size in self.echoes) > KEPT_BYTES:
            self.echoes.pop()


class EchoReceivers:
    """The receivers in use lately. The one that nobody asked for longest is forgotten."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, EchoReceiver] = OrderedDict()

    def get(self, receiver_id: str) -> EchoReceiver:
        """The receiver of that id, empty when it is not remembered."""
        receiver = self._by_id.setdefault(receiver_id, EchoReceiver())
        self._by_id.move_to_end(receiver_id)
        if len(self._by_id) > KEPT_RECEIVERS:
            self._by_id.popitem(last=False)
        return receiver


_HANG_UP_SECONDS = 0.1  # aiohttp takes 0 for as long as it likes

# Answers a request with the receiver's token, which ends its path, and its body.
Receive = Callable[[web.BaseRequest, str, bytes], Awaitable[web.StreamResponse]]


class InsideServer:
    """An HTTP server without a listener: it serves only the sockets that `connect` makes."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._server: web.Server | None = None

    async def connect(self, _addresses: Sequence[IpAddress], _port: int) -> socket.socket:
        """One end of a new pair, whose other end is served."""
        if self._server is None:
            self._server = web.Server(self._handle, access_log=None)
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)  # noqa: FBT003 - the library's own way to say it
        await asyncio.get_running_loop().connect_accepted_socket(self._server, theirs)
        return ours

    async def close(self) -> None:
        """Hang up whatever is still open."""
        if self._server is not None:
            await self._server.shutdown(_HANG_UP_SECONDS)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        token = request.path.rpartition("/")[2]
        return await self._receive(request, token, await request.read())


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

    def outside_of(self, environment: Environment) -> Dependencies:
        """The world as a dispatcher sees it: test finds echo receivers in it, live does not."""
        outside = make_dependencies(environment.settings.webhooks)
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
