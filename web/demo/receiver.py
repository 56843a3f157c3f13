"""A partner's webhook receiver, for the demo: it shows what came and whether the signature held.

It plays a server outside the box, on a port of its own, and checks signatures as the sandbox's
echo receivers do: from sections 6.1 and 6.3 of the interface alone.
"""

import asyncio
import json
import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

from aiohttp import web

from appliance.clock import Clock, format_instant
from web.rendering import make_templates
from web.sandbox.verification import verify

_KEPT = 200
_LIVE_SCRIPT = 'new EventSource("events").onmessage = () => location.reload();\n'
_PAGE_POLICY = "default-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class Received:
    """One delivery as it came in."""

    at: str
    environment: str
    type: str
    delivery: str
    signature: str
    again: bool
    reservation: dict[str, object]


class Receiver:
    """Two addresses, `/live` and `/test`, and a page that lists what they received."""

    def __init__(self, clock: Clock, listener: socket.socket) -> None:
        """`listener` is bound to loopback and not accepting yet."""
        self._clock = clock
        self._listener = listener
        self._secrets: dict[str, str] = {}
        self._received: deque[Received] = deque(maxlen=_KEPT)
        self._watchers: set[asyncio.Event] = set()
        self._page = make_templates().get_template("demo/receiver.html")

    @property
    def authority(self) -> str:
        """`host:port`: what `webhooks.allow_networks` has to open."""
        host, port = self._listener.getsockname()[:2]
        return f"{host}:{port}"

    def url(self, environment: str) -> str:
        """Where deliveries of that environment are sent."""
        return f"http://{self.authority}/{environment}"

    def expect(self, environment: str, secret: str) -> None:
        """From now on verify deliveries of that environment with `secret`."""
        self._secrets[environment] = secret

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accept deliveries until the context ends."""
        app = web.Application()
        app.router.add_get("/", self._show)
        app.router.add_get("/received.json", self._show_json)
        app.router.add_get("/events", self._watch)
        app.router.add_get("/live.js", self._script)
        app.router.add_post("/{environment:live|test}", self._receive)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.SockSite(runner, self._listener).start()
            yield
        finally:
            await runner.cleanup()

    async def _receive(self, request: web.Request) -> web.Response:
        environment, raw = request.match_info["environment"], await request.read()
        secrets = [self._secrets.get(environment, "")]
        header = request.headers.get("X-Service-Signature", "")
        signature = verify(secrets, header, raw, self._clock.now()).verdict
        if signature != "valid":
            self._keep(environment, request, signature, {})
            return web.Response(status=400, text=signature)
        body = json.loads(raw)  # only now: before, it could be anybody's
        self._keep(environment, request, signature, body["data"]["reservation"])
        return web.Response(status=204)

    def _keep(
        self,
        environment: str,
        request: web.Request,
        signature: str,
        reservation: dict[str, object],
    ) -> None:
        delivery = request.headers.get("X-Service-Delivery", "")
        self._received.appendleft(
            Received(
                at=format_instant(self._clock.now()),
                environment=environment,
                type=request.headers.get("X-Service-Event", ""),
                delivery=delivery,
                signature=signature,
                again=any(one.delivery == delivery for one in self._received),
                reservation=reservation,
            )
        )
        for watcher in self._watchers:
            watcher.set()

    async def _show(self, _request: web.Request) -> web.Response:
        return web.Response(
            text=self._page.render(received=list(self._received), url=self.url("live")),
            content_type="text/html",
            headers={"Content-Security-Policy": _PAGE_POLICY, "Cache-Control": "no-store"},
        )

    async def _show_json(self, _request: web.Request) -> web.Response:
        return web.json_response([asdict(one) for one in self._received])

    async def _script(self, _request: web.Request) -> web.Response:
        return web.Response(text=_LIVE_SCRIPT, content_type="text/javascript")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: one for each change of the list."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        news = asyncio.Event()
        self._watchers.add(news)
        try:
            while True:
                await news.wait()
                news.clear()
                await response.write(b"data: more\n\n")
        except ConnectionError:  # the page was closed
            return response
        finally:
            self._watchers.discard(news)
