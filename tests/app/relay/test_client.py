"""The box's connection to its relay: it comes back by itself, and says when it cannot."""

import asyncio
import socket
import ssl
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import asyncssh
import pytest

from appliance.alerts import list_alerts
from appliance.relay_access import access_file
from tests.app.relay.relay_world import HERE, Answering, a_relay
from tests.app.relay.test_hello import hello_for
from tests.conftest import opened_box, running_box, with_settings
from web.connection import READ_AT_ONCE, ConnectionLimit
from web.listeners import CountedTls
from web.relay import client
from web.relay.client import RelayClient
from web.relay.dial import dial

A = "a.example"
MSG_CHANNEL_CLOSE = 97


class Joined:
    """A box, its relay, and the client between them."""

    def __init__(self, box, root, relay):
        self.box, self.relay, self.file = box, relay, access_file(root)
        self.client = RelayClient(box, root)
        self.seen = []

    def start(self, *, serves_tls=True):
        def protocol():
            return Answering(b"box|", self.seen)

        self.client.start(protocol if serves_tls else None, protocol)

    def alerts(self):
        return {(each.name, each.detail) for each in self.box.live.database.peek(list_alerts)}

    async def until_alerts(self, *wanted):
        """Wait until these alerts are active, and no others."""
        await self.relay.until(lambda: self.alerts() == set(wanted))

    async def until_connected(self):
        await self.relay.until(lambda: self.relay.boxes.connection(A) is not None)

    def change(self, access):
        """As a command in another process does."""
        if access is None:
            self.file.unlink()
        else:
            access.save(self.file)
        self.box.look_for_changes()


@pytest.fixture
async def joined(tmp_path, clock, settings, monkeypatch):
    monkeypatch.setattr(client, "_QUIET_SECONDS", 0.0)
    monkeypatch.setattr(client, "_RETRY_SECONDS", (0.01, 0.02))
    monkeypatch.setattr(client, "_RETRY_REFUSED_SECONDS", (0.01, 0.02))
    root = tmp_path / "box"
    root.mkdir()
    async with opened_box(root, clock, settings) as box, a_relay(tmp_path / "relay") as relay:
        access_file(root).parent.mkdir(exist_ok=True)
        found = Joined(box, root, relay)
        try:
            yield found
        finally:
            await found.client.close()


def nobody():
    """A port of this machine at which nobody listens."""
    with socket.socket() as bound:
        bound.bind((HERE, 0))
        return bound.getsockname()[1]


async def test_a_box_follows_join_and_leave_while_it_runs(joined):
    joined.start()
    await asyncio.sleep(0)
    assert joined.alerts() == set()
    joined.change(await joined.relay.enrol(A))
    await joined.until_connected()

    joined.change(None)

    await joined.relay.until(lambda: joined.relay.boxes.connection(A) is None)
    await joined.until_alerts()


@pytest.mark.parametrize("accepts", [False, True])
async def test_a_relay_that_does_not_answer_is_told_until_it_does(joined, monkeypatch, accepts):
    access = await joined.relay.enrol(A)
    joined.start()
    silent = await asyncio.start_server(lambda *_: asyncio.sleep(0), HERE, 0)
    port = silent.sockets[0].getsockname()[1] if accepts else nobody()
    with monkeypatch.context() as hasty:
        hasty.setattr("web.relay.dial._DIAL_SECONDS", 0.05)
        joined.change(replace(access, relay=replace(access.relay, port=port)))
        await joined.until_alerts(("relay_away", HERE))
    silent.close()

    joined.change(access)

    await joined.until_connected()
    await joined.until_alerts()


async def test_a_lost_connection_is_dialled_again(joined):
    joined.start()
    joined.change(await joined.relay.enrol(A))
    await joined.until_connected()
    before = joined.relay.boxes.traffic[A].dials

    joined.relay.boxes.connection(A).abort()

    await joined.relay.until(lambda: joined.relay.boxes.traffic[A].dials == before + 1)
    assert (await joined.relay.ask_for(A)) == b"\x15\x03\x03\x00\x02\x02\x50"  # from loopback


async def test_each_refusal_is_told(joined):
    relay, access = joined.relay, await joined.relay.enrol(A)
    joined.start()
    joined.change(replace(access, relay=replace(access.relay, fingerprint="SHA256:other")))
    await joined.until_alerts(("relay_other_key", HERE))

    joined.change(access)
    await joined.until_connected()
    await joined.until_alerts()

    relay.enrolments.revoke(A)
    relay.boxes.reload()
    await joined.until_alerts(("relay_revoked", HERE))


async def test_a_copy_of_the_box_is_told_and_does_not_take_the_callers_back(joined, monkeypatch):
    monkeypatch.setattr(client, "_RETRY_REFUSED_SECONDS", (600.0, 601.0))
    access = await joined.relay.enrol(A)
    joined.start()
    joined.change(access)
    await joined.until_connected()

    _, seen = await joined.relay.dial(access)

    await joined.until_alerts(("relay_replaced", HERE))
    await joined.relay.ask_for(A)
    assert len(seen) == 1


async def test_access_that_is_damaged_is_told_until_the_box_joins_again(joined):
    joined.start()
    joined.change(await joined.relay.enrol(A))
    await joined.until_connected()

    whole = joined.file.read_bytes()
    for damaged in (whole[:1], whole.replace(b"PRIVATE KEY", b"PRIVATE"), whole):
        joined.file.write_bytes(damaged)
        joined.box.look_for_changes()
        told = {"relay_unusable"} if damaged != whole else set()
        await joined.relay.until(lambda told=told: {name for name, _ in joined.alerts()} == told)

    joined.change(await joined.relay.enrol(A))
    await joined.until_connected()
    await joined.until_alerts()


async def test_access_that_cannot_be_read_once_is_read_again(joined, monkeypatch):
    monkeypatch.setattr(client, "_READ_AGAIN_SECONDS", (0.01, 0.02))
    (await joined.relay.enrol(A)).save(joined.file)
    joined.file.chmod(0o644)
    joined.start()
    await joined.relay.until(lambda: {name for name, _ in joined.alerts()} == {"relay_unusable"})

    joined.file.chmod(0o600)  # nothing tells the box

    await joined.until_connected()
    await joined.until_alerts()


async def test_a_box_without_https_says_that_it_cannot_use_the_relay(joined):
    joined.start(serves_tls=False)

    joined.change(await joined.relay.enrol(A))

    await joined.relay.until(lambda: {name for name, _ in joined.alerts()} == {"relay_unusable"})
    assert joined.relay.boxes.connection(A) is None


async def test_a_box_that_stops_accepts_no_more_callers(joined):
    joined.start()
    joined.change(await joined.relay.enrol(A))
    await joined.until_connected()

    joined.client.stop_accepting()

    assert await joined.relay.ask_for(A) == b"\x15\x03\x03\x00\x02\x02\x50"
    assert joined.seen == []


class Failing(Answering):
    """A protocol with a fault."""

    def data_received(self, _data):
        raise ValueError("a fault")


async def test_a_fault_in_one_connection_ends_no_other(joined):
    access = await joined.relay.enrol(A)
    protocols = [Failing(b"", []), Answering(b"box|", joined.seen)]

    dialled = await dial(access, protocols.pop, protocols.pop, lambda _caller: True)
    async with joined.relay.call() as (reader, writer):
        writer.write(hello_for(A))
        assert await reader.read(4) == b"box|"

        assert await joined.relay.ask_for(A) == b""
        writer.write(b"more")
        await joined.relay.until(lambda: joined.seen[-1][1] == b"more")
    dialled.close()


async def test_a_box_at_its_own_limit_closes_the_caller_and_keeps_the_relay(joined):
    access = await joined.relay.enrol(A)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    limit = ConnectionLimit(0)

    def tls():
        return CountedTls(Answering(b"", joined.seen), context, limit)

    dialled = await dial(access, tls, tls, lambda _caller: True)
    connection = joined.relay.boxes.connection(A)

    assert await joined.relay.ask_for(A) == b""
    assert joined.seen == []
    assert joined.relay.boxes.connection(A) is connection
    dialled.close()


class Closing(asyncio.Protocol):
    """A protocol that closes every connection at once."""

    def connection_made(self, transport):
        transport.abort()


async def test_a_relay_that_confirms_no_close_cannot_fill_the_box(joined, monkeypatch):
    monkeypatch.setattr("web.relay.dial._CHANNELS_MAX", 3)
    asked = []
    access = await joined.relay.enrol(A)
    dialled = await dial(access, Closing, Closing, lambda _: asked.append(1) or True)
    hostile = joined.relay.boxes.connection(A)
    send, dropped = hostile.send_packet, []

    def send_but_no_close(kind, *parts, **options):
        if kind == MSG_CHANNEL_CLOSE:
            dropped.append((kind, *parts))
        else:
            send(kind, *parts, **options)

    async def open_channels(number):
        for _ in range(number):
            with suppress(asyncssh.ChannelOpenError):
                await hostile.create_connection(asyncssh.SSHTCPSession, A, 443, "192.0.2.1", 1)

    hostile.send_packet = send_but_no_close
    await open_channels(7)
    assert len(asked) == 3

    hostile.send_packet = send
    for packet in dropped:
        send(*packet)
    await joined.relay.until(lambda: not hostile._channels)
    await open_channels(2)
    assert len(asked) == 5
    assert len(dialled._connection._channels) <= 2
    dialled.close()


@asynccontextmanager
async def called(joined, folder, clock, caller, **settings):
    """A box that a relay calls in the name of `caller`: the box, and the relay's connection."""
    access = await joined.relay.enrol(A)
    (folder / "house").mkdir()
    async with running_box(folder / "house", clock, with_settings(**settings)) as running:
        served = running.client.server.handler
        dialled = await dial(access, served, served, lambda _caller: True)
        reader, writer = await joined.relay.boxes.connection(A).open_connection(
            A, 443, caller, 4444, encoding=None
        )
        yield running, reader, writer
        dialled.close()


@pytest.mark.parametrize("is_public", [True, False])
async def test_a_relay_cannot_claim_a_caller_in_the_house_to_see_its_portal(
    joined, tmp_path, clock, is_public
):
    settings = {"server": {"public_portal": is_public}}
    async with called(joined, tmp_path, clock, "192.168.1.20", **settings) as (_, reader, writer):
        writer.write(b"GET /portal/sign-in HTTP/1.1\r\nHost: 192.168.1.10\r\n\r\n")
        status = await asyncio.wait_for(reader.readuntil(b"\r\n"), 30.0)

        assert (b" 404 " in status) == (not is_public)


async def test_a_relay_cannot_use_up_the_limits_of_a_caller_in_the_house(joined, tmp_path, clock):
    limits = {"unauthenticated_per_minute": 1}
    async with called(joined, tmp_path, clock, "127.0.0.1", api=limits) as (box, reader, writer):
        for expected in (b" 401 ", b" 429 "):
            writer.write(b"GET /v1/venue HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30.0)
            assert expected in head
            await reader.readuntil(b"}")
        async with box.client.get("/v1/venue") as response:
            assert response.status == 401


async def test_a_flood_from_either_end_is_read_in_small_steps(joined):
    access = await joined.relay.enrol(A)
    dialled, _seen = await joined.relay.dial(access)
    for end in (dialled._connection, joined.relay.boxes.connection(A)):
        assert end._transport.max_size == READ_AT_ONCE
