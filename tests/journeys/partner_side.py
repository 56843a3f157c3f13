"""Clients of a box, by its interface alone: a partner, its receiver and a terminal."""

import asyncio
import hashlib
import hmac
import json
import socket
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web

TOLERANCE_SECONDS = 300


@dataclass(frozen=True)
class Received:
    """A delivery received at one of the receiver's URLs."""

    address: str
    event: str
    delivery: str
    signature_held: bool
    body: dict

    @property
    def reservation(self):
        return self.body["data"]["reservation"]


class Receiver:
    """A partner's server with a path for each endpoint, and the endpoints' secrets."""

    def __init__(self):
        self.received = []
        self.secrets = {}
        self.authority = ""
        self.open = asyncio.Event()
        self.open.set()
        self._news = asyncio.Condition()

    @asynccontextmanager
    async def running(self, listener=None, tls=None):
        """Serve on `listener`, or on a free port of loopback; over https with the context `tls`."""
        listener = listener or socket.create_server(("127.0.0.1", 0))
        app = web.Application()
        app.router.add_post("/{name}", self._receive)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.SockSite(runner, listener, ssl_context=tls).start()
        host, port = listener.getsockname()
        self.authority = f"{host}:{port}"
        try:
            yield self
        finally:
            self.open.set()
            await runner.cleanup()

    @property
    def settings(self):
        """The settings that allow this receiver."""
        return {
            "VENUEBOX_WEBHOOKS_ALLOW_NETWORKS": self.authority,
            "VENUEBOX_WEBHOOKS_ALLOW_HTTP": "true",
        }

    def url(self, name):
        return f"http://{self.authority}/{name}"

    def found(self, event, reservation_id, address=None):
        """Return the received deliveries of that event."""
        return [
            one
            for one in self.received
            if one.event == event
            and one.reservation["serviceReservationId"] == reservation_id
            and address in {None, one.address}
        ]

    async def wait_for(self, event, reservation_id, times=1, seconds=60.0):
        """Wait until the event has arrived `times` times; return its first delivery."""

        def is_here():
            return len(self.found(event, reservation_id)) >= times

        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(is_here)
        return self.found(event, reservation_id)[0]

    async def _receive(self, request):
        raw, name = await request.read(), request.match_info["name"]
        held = verify(self.secrets.get(name, ""), request.headers["X-Service-Signature"], raw)
        one = Received(
            name,
            request.headers["X-Service-Event"],
            request.headers["X-Service-Delivery"],
            held,
            json.loads(raw),
        )
        self.received.append(one)
        async with self._news:
            self._news.notify_all()
        await self.open.wait()
        return web.Response(status=204 if held else 400)


def verify(secret, header, raw):
    """Verify `t=<seconds>,v1=<hex HMAC-SHA256 of "<t>.<raw body>">` (sections 6.1, 6.3)."""
    stamp, _, given = header.partition(",v1=")
    at = stamp.removeprefix("t=")
    if not at.isdecimal() or abs(time.time() - int(at)) > TOLERANCE_SECONDS:
        return False
    expected = hmac.new(secret.encode(), at.encode() + b"." + raw, hashlib.sha256)
    return hmac.compare_digest(expected.hexdigest(), given)


class Caller:
    """Calls one environment of a running box with a bearer token."""

    def __init__(self, session, box, environment, token):
        self._session = session
        self._box = box
        self._prefix = "" if environment == "live" else "/test"
        self._headers = {"Authorization": f"Bearer {token}"}

    async def __call__(self, method, path, body=None):
        """Return (status, decoded body). `headers` holds the headers of the last answer."""
        url = self._box.address + self._prefix + path
        async with self._session.request(method, url, json=body, headers=self._headers) as answer:
            self.headers = answer.headers
            return answer.status, await answer.json()

    async def must(self, status, method, path, body=None):
        """Call, require this status, and return the body."""
        found, answer = await self(method, path, body)
        assert found == status, f"{method} {path} answered {found}: {answer}"
        return answer


@asynccontextmanager
async def calling(box, founded, environment):
    """Yield the callers of an environment's partner and terminal."""
    timeout = aiohttp.ClientTimeout(total=15)
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        yield (
            Caller(session, box, environment, founded.keys[environment]),
            Caller(session, box, environment, founded.terminals[environment]),
        )
