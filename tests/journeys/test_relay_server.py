"""What boxes with a key, and callers, can do at the relay's sshd and HAProxy."""

import asyncio
import os
import ssl
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

import asyncssh
import pytest

from appliance.core.ssh import OPTIONS, ensure_key, key_file
from appliance.relay import Relay
from tests.journeys.relay_server import RelayServer
from tests.namespaces import Venue, may_build_a_venue, within
from web.relay.line import open_line

__test__ = may_build_a_venue()
SECONDS = 120.0  # 64 lines take so long on a busy machine
LINES_MAX, CALLERS_MAX = 64, 100  # from one address, in packaging/relay/haproxy.cfg


@pytest.fixture(scope="module")
def venue():
    with Venue(f"vbr{os.getpid() % 10**6}") as built:
        yield built


@pytest.fixture(scope="module")
def relay(venue, tmp_path_factory):
    folder = tmp_path_factory.mktemp("relay")
    (folder / "resolv.conf").touch()
    with RelayServer(folder, venue.stranger, venue.STRANGER, folder / "resolv.conf") as server:
        yield server


class Machine:
    """A machine with a minimal box, which answers callers with its mark."""

    def __init__(self, folder, name, relay):
        folder.mkdir()
        self.root, self.name, self.key = folder, name, ensure_key(folder)
        self.relay = Relay.parse(relay.add(name, self.key))
        self.callers = []

    @asynccontextmanager
    async def line(self):
        line = await open_line(self.relay, self.root, partial(Answering, self), lambda _: True)
        try:
            yield line
        finally:
            line.abort()

    async def sign_in(self, **options):
        """Sign in with the key like any SSH client."""
        return await asyncssh.connect(
            self.relay.host, self.relay.port, username=self.relay.user, config=None,
            known_hosts=None, client_keys=[str(key_file(self.root))], agent_path=None,
            **{"compression_algs": OPTIONS["compression_algs"], **options},
        )  # fmt: skip


class Answering(asyncio.Protocol):
    def __init__(self, machine):
        self.machine = machine

    def connection_made(self, transport):
        self.transport = transport
        self.machine.callers.append(transport.get_extra_info("peername")[0])

    def data_received(self, data):
        self.transport.write(self.machine.name.encode() + b"|" + data)


def hello_for(name):
    """Return the first bytes of a TLS connection to `name`."""
    sent = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name)
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return sent.read()


@asynccontextmanager
async def calling(relay, name, hello=None):
    """Connect like a browser. Yield the first bytes of the answer, and disconnect at the end."""
    reader, writer = await asyncio.open_connection(relay.address, 443)
    answer = b""
    try:
        writer.write(hello or hello_for(name))
        with suppress(ConnectionResetError):
            async with asyncio.timeout(SECONDS):
                answer = await reader.read(len(name) + 1)
        yield answer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def call(relay, name, hello=None):
    async with calling(relay, name, hello) as answer:
        return answer


@pytest.fixture
def pair(relay, tmp_path):
    """Two boxes that are registered at the relay."""
    return [Machine(tmp_path / name, name, relay) for name in ("a.example", "a-b.example")]


def test_each_box_gets_the_callers_of_its_name_with_their_addresses(venue, relay, pair):
    async def run():
        async with pair[0].line(), pair[1].line():
            for machine in pair:
                for name in (machine.name, machine.name.upper()):
                    assert await call(relay, name) == f"{machine.name}|".encode()
                assert machine.callers == [venue.GUEST] * 2
            assert await call(relay, "unknown.example") == b""
            assert await call(relay, "", b"GET / HTTP/1.1\r\n\r\n" + bytes(50)) == b""

    within(venue.guest, asyncio.run, run())


def test_with_its_key_a_box_can_only_listen_on_its_own_port(venue, relay, pair):
    [honest, hostile] = pair
    own, other = hostile.relay.listen_port, honest.relay.listen_port

    async def tries(ssh):
        def listen(host, port):
            return ssh.create_server(lambda *_: None, host, port)

        def connect(port):
            return ssh.create_connection(asyncssh.SSHTCPSession, "127.0.0.1", port)

        for attempt in (
            *(listen("127.0.0.1", port) for port in (other, 22, 80, 0, 20_999)),
            *(listen(host, own) for host in ("", "0.0.0.0", "localhost", "::1")),  # noqa: S104
            *(connect(port) for port in (22, own, other)),
            ssh.create_unix_server(lambda *_: None, "/tmp/venuebox-hostile"),
            ssh.create_unix_connection(asyncssh.SSHUNIXSession, "/run/haproxy/admin.sock"),
            ssh.run("id"), ssh.create_session(asyncssh.SSHClientSession),
            ssh.create_session(asyncssh.SSHClientSession, term_type="xterm"),
            ssh.start_sftp_client(),
        ):  # fmt: skip
            with pytest.raises((asyncssh.ChannelOpenError, asyncssh.ChannelListenError)):
                await attempt

    async def run():
        async with honest.line():
            ssh = await hostile.sign_in()
            await tries(ssh)
            assert await ssh.create_server(lambda *_: None, "127.0.0.1", own)
            ssh.abort()
            # Either end may be the first to report that no algorithm matches.
            with pytest.raises((asyncssh.KeyExchangeFailed, asyncssh.ConnectionLost)):
                await hostile.sign_in(compression_algs=["zlib@openssh.com"])
            assert await call(relay, honest.name) == b"a.example|"

    within(venue.box, asyncio.run, run())


def test_a_box_with_many_connections_does_not_block_other_boxes(venue, relay, pair):
    [honest, hostile] = pair

    async def hoard():
        held = []
        async with asyncio.timeout(SECONDS):
            while len(held) < LINES_MAX:
                with suppress(OSError, asyncssh.Error):  # sshd admits some later than others
                    held.append(await hostile.sign_in())
        with pytest.raises((OSError, asyncssh.Error)):
            await hostile.sign_in()
        return held

    async def call_honest():
        async with honest.line():
            return await call(relay, honest.name)

    async def run():
        held = await hoard()
        try:
            answer = await asyncio.to_thread(within, venue.guest, asyncio.run, call_honest())
        finally:
            for each in held:
                each.abort()
        assert answer == b"a.example|"

    within(venue.box, asyncio.run, run())


def test_one_caller_cannot_use_up_the_connections_of_a_box(venue, relay, pair):
    machine = pair[0]

    async def run():
        async with machine.line(), AsyncExitStack() as held:
            for number in range(CALLERS_MAX + 1):
                answer = await held.enter_async_context(calling(relay, machine.name))
                assert answer == (b"a.example|" if number < CALLERS_MAX else b"")
            elsewhere = partial(within, venue.phone, asyncio.run)
            answer = await asyncio.to_thread(elsewhere, call(relay, machine.name))
            assert answer == b"a.example|"

    within(venue.guest, asyncio.run, run())


def test_a_replaced_or_removed_box_is_disconnected(venue, relay, pair, tmp_path):
    [first, bystander] = pair

    async def run():
        async with first.line() as line, bystander.line() as other:
            second = await asyncio.to_thread(Machine, tmp_path / "new", first.name, relay)
            async with asyncio.timeout(SECONDS):
                await line.wait_closed()
            with pytest.raises(asyncssh.PermissionDenied):
                await first.sign_in()
            assert second.relay.listen_port != first.relay.listen_port
            async with second.line() as new:
                assert await call(relay, first.name) == b"a.example|"

                await asyncio.to_thread(relay.add, "--remove", first.name)

                async with asyncio.timeout(SECONDS):
                    await new.wait_closed()
                assert await call(relay, first.name) == b""
            assert not other.is_closed()
            assert await call(relay, bystander.name) == b"a-b.example|"

    within(venue.box, asyncio.run, run())


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("a_b.example", "KEY"), ("a.example\n", "KEY"), ("example", "KEY"), (".a.example", "KEY"),
        (f"{'a' * 64}.example", "KEY"), ("c.example", "KEY\nKEY"), ("c.example", "ssh-rsa AAAA"),
        ("c.example", 'command="id" KEY'), ("c.example", ""), ("--remove", "c.example"),
        ("d.example", "KEY"),  # the key of another box
    ],
)  # fmt: skip
def test_an_invalid_name_or_key_changes_nothing_on_the_relay(relay, pair, name, key):
    files = ("cat", "/etc/venuebox-relay/names.map", "/etc/venuebox-relay/authorized_keys")
    before = relay.run(*files)

    assert relay.add(name, key.replace("KEY", pair[0].key), check=False) == ""

    assert relay.run(*files) == before
