"""A relay in this process, boxes that dial it, and callers. TLS is not spoken, only its hello."""

import asyncio
from contextlib import asynccontextmanager, suppress

import asyncssh
from aiohttp import web

from appliance.clock import SystemClock
from appliance.http.rate_limit import RateLimit
from appliance.relay_access import RelayAddress
from tests.app.relay.test_hello import hello_for
from web.connection import ConnectionLimit
from web.listeners import listen
from web.relay.dial import dial, join
from web.relay.enrolment import Enrolments
from web.relay.relay import build_status
from web.relay.router import Router
from web.relay.server import Boxes, Limits, listen_for_boxes
from web.relay.storage import BoxFiles

HERE = "127.0.0.1"
SECONDS = 30.0
TOKEN = "a-token-of-the-relay"


class MovedClock(SystemClock):
    """The system's clock, some milliseconds on."""

    moved = 0

    def now(self):
        return super().now() + self.moved


class Answering(asyncio.Protocol):
    """A box's protocol: answers what it reads with its mark in front, and keeps what it saw."""

    def __init__(self, mark, seen):
        self.mark, self.seen = mark, seen
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.seen.append((self.transport.get_extra_info("peername"), data))
        self.transport.write(self.mark + data)

    def eof_received(self):
        return False


class World:
    """The relay and what it needs. `start` has run."""

    def __init__(self, root, limits, per_minute, host, per_address):
        self.host = host
        self.clock = MovedClock()
        self.enrolments = Enrolments(root)
        self.enrolments.make_folders()
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.boxes = Boxes(self.enrolments, self.clock, limits)
        rate = RateLimit(self.clock, per_minute)
        limit = ConnectionLimit(1000, per_address=per_address)
        self.router = Router(self.boxes, limit, rate)
        self.dialled = []
        self.secrets = 0

    async def start(self):
        await self.listen()
        self.address = RelayAddress(self.host, self.ssh.get_port(), self.key.get_fingerprint())
        self.enrolments.set_address(self.address)
        self.public = [
            await asyncio.start_server(serve, self.host, 0)
            for serve in (self.router.serve_tls, self.router.serve_http)
        ]
        self.tls, self.http = (each.sockets[0].getsockname()[1] for each in self.public)
        self.runner = web.AppRunner(build_status(self.boxes, self.router, TOKEN))
        await self.runner.setup()
        site = web.TCPSite(self.runner, HERE, 0)
        await site.start()
        self.status = self.runner.addresses[0][1]

    async def listen(self, port=0):
        listener = listen(self.host, port)
        self.ssh = await listen_for_boxes(self.boxes, listener, self.key, BoxFiles)

    async def stop(self):
        for dialled in self.dialled:
            dialled.close()
        for server in (*self.public, self.ssh):
            server.close()
        await self.router.close()
        self.boxes.close()
        await self.runner.cleanup()
        await self.until(lambda: not any(map(self.boxes.connection, self.boxes.names)))

    def invite(self, name, hours=1):
        self.secrets += 1
        ends_at = self.clock.now() + hours * 3_600_000
        return self.enrolments.invite(name, self.secrets.to_bytes(16), ends_at)

    async def enrol(self, name):
        """A box that has joined under this name; it has not dialled yet."""
        return await join(self.invite(name))

    async def dial(self, access, may_accept=lambda _caller: True):
        """Dial as that box; return what its protocols see."""
        seen = []
        mark = access.name.encode() + b"|"
        dialled = await dial(
            access, lambda: Answering(mark + b"tls|", seen),
            lambda: Answering(mark + b"plain|", seen), may_accept,
        )  # fmt: skip
        self.dialled.append(dialled)
        return dialled, seen

    async def connected(self, name):
        """A box with this name that has dialled, and what it sees."""
        access = await self.enrol(name)
        _dialled, seen = await self.dial(access)
        return access, seen

    async def until(self, is_so):
        async with asyncio.timeout(SECONDS):
            while not is_so():  # noqa: ASYNC110 - it waits for several things at once
                await asyncio.sleep(0.01)

    @asynccontextmanager
    async def call(self, port=None, **options):
        """A caller's connection to the public port."""
        reader, writer = await asyncio.open_connection(self.host, port or self.tls, **options)
        try:
            yield reader, writer
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    async def ask(self, data, port=None):
        """All that a caller who sends this receives until the connection ends or pauses."""
        async with self.call(port) as (reader, writer), asyncio.timeout(SECONDS):
            writer.write(data)
            with suppress(ConnectionResetError):
                return await reader.read(65536)
            return b""

    def ask_for(self, name):
        return self.ask(hello_for(name))


@asynccontextmanager
async def a_relay(root, limits=None, per_minute=10_000, host=HERE, per_address=1000):
    world = World(root, limits or Limits(), per_minute, host, per_address)
    await world.start()
    try:
        yield world
    finally:
        await world.stop()
