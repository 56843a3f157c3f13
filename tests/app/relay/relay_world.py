"""A relay in this process that follows the rules of sshd, and callers that connect through it."""

import asyncio
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

import asyncssh

from appliance.core.ssh import ensure_key
from appliance.relay import Relay
from tests.waiting import until, within

HERE, CALLER = "127.0.0.1", "192.0.2.7"
USER, NAME = "venuebox-relay", "a.example"


def header_of(caller, port=4444):
    """Return the PROXY header that HAProxy sends for this caller."""
    address = ip_address(caller).packed
    rest = address + bytes(len(address)) + port.to_bytes(2) + (443).to_bytes(2)
    family = 0x11 if len(address) == 4 else 0x21
    return b"\r\n\r\n\x00\r\nQUIT\n" + bytes([0x21, family]) + len(rest).to_bytes(2) + rest


class Answering(asyncio.Protocol):
    """A box's protocol. It answers with what it read, marked at the start, and records it."""

    def __init__(self, seen):
        self.seen, self.transport = seen, None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.seen.append((self.transport.get_extra_info("peername")[0], data))
        self.transport.write(b"box|" + data)


class _Sshd(asyncssh.SSHServer):
    def __init__(self, world):
        self.world = world

    def connection_made(self, conn):
        self.line = conn
        self.world.lines.append(conn)

    def connection_lost(self, _error):
        self.world.lines.remove(self.line)

    def public_key_auth_supported(self):
        return True

    def validate_public_key(self, username, key):
        return username == USER and key.export_public_key().split()[1] in self.world.keys

    def server_requested(self, listen_host, listen_port):
        return (listen_host, listen_port) == (HERE, self.world.listen_port)


class World:
    """A running relay. The box may only request the port `listen_port`."""

    def __init__(self, listen_port):
        self.listen_port = listen_port
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.keys, self.lines = set(), []

    async def start(self, **options):
        self.server = await asyncssh.listen(
            HERE, 0, server_factory=lambda: _Sshd(self), server_host_keys=[self.host_key],
            **options,
        )  # fmt: skip

    def admit(self, root):
        """Let the box in `root` join. Return the relay that its owner enters."""
        self.keys.add(ensure_key(root).split()[1].encode())
        return Relay(
            USER, HERE, self.server.get_port(), self.listen_port,
            self.host_key.get_fingerprint(), NAME,
        )  # fmt: skip

    def cut(self):
        """Close the connections of all boxes."""
        for each in list(self.lines):
            each.abort()

    async def until(self, is_so):
        await until(is_so)

    @asynccontextmanager
    async def calling(self, *parts):
        """Connect as a caller and send these parts one after another."""
        reader, writer = await asyncio.open_connection(HERE, self.listen_port)
        try:
            for part in parts:
                writer.write(part)
                await asyncio.sleep(0.01)
            yield reader, writer
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def ask(self, *parts):
        """Send these parts as a caller. Return everything received until the first pause."""
        async with self.calling(*parts) as (reader, _), within("an answer"):
            with suppress(ConnectionResetError):
                return await reader.read(65536)
            return b""

    async def stop(self):
        self.server.close()
        self.cut()
        await self.server.wait_closed()


@asynccontextmanager
async def a_relay(listen_port, **options):
    world = World(listen_port)
    await world.start(**options)
    try:
        yield world
    finally:
        await world.stop()
