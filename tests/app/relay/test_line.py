"""The box's connection to its relay: what callers and the relay can do through it."""

import asyncio
from contextlib import asynccontextmanager, suppress
from functools import partial

import asyncssh
import pytest

from appliance.http.request import networks_of
from tests.app.relay.relay_world import CALLER, HERE, Answering, a_relay, header_of
from tests.conftest import running_box, with_settings
from tests.waiting import within
from web.relay import line
from web.relay.line import is_believable, open_line

MSG_CHANNEL_CLOSE = 97


@asynccontextmanager
async def opened(relay, root, protocol, may_accept=lambda _caller: True):
    connection = await open_line(relay.admit(root), root, protocol, may_accept)
    try:
        yield connection
    finally:
        connection.abort()
        await connection.wait_closed()


@pytest.fixture
async def seen(relay, root):
    """A list of what the box reads, with the callers' addresses."""
    found = []
    async with opened(relay, root, partial(Answering, found)):
        yield found


@pytest.mark.parametrize("caller", [CALLER, "2001:db8::7"])
async def test_the_callers_address_comes_from_the_proxy_header(relay, seen, caller):
    head = header_of(caller) + b"hello"
    for parts in ([head], [head[:9], head[9:30], head[30:]]):
        seen.clear()
        async with relay.calling(*parts) as (reader, _writer):
            assert (await reader.readexactly(4)) == b"box|"
        assert {address for address, _ in seen} == {caller}
        assert b"".join(data for _, data in seen) == b"hello"


@pytest.mark.parametrize("sent", [b"\x16\x03\x01", b"PROXY TCP4 192.0.2.7 192.0.2.7 1 1\r\n"])
async def test_a_connection_without_the_proxy_header_is_closed(relay, seen, sent):
    assert await relay.ask(sent) == b""
    assert seen == []


async def test_a_connection_whose_proxy_header_never_arrives_is_closed(relay, root, monkeypatch):
    monkeypatch.setattr(line, "_HEADER_SECONDS", 0.01)
    async with opened(relay, root, partial(Answering, [])):
        assert await relay.ask(header_of(CALLER)[:9]) == b""


async def test_a_connection_with_an_implausible_caller_address_is_closed(relay, root):
    asked = []
    async with opened(relay, root, partial(Answering, []), asked.append):
        assert await relay.ask(header_of(HERE) + b"hello") == b""
    assert asked == [HERE]


@pytest.mark.parametrize(
    ("caller", "is_so"),
    [(CALLER, True), ("192.168.1.20", True), ("2001:db8::7", True), (HERE, False), ("::1", False),
     ("::", False), ("224.0.0.1", False), ("10.1.2.3", False), ("nobody", False)],
)  # fmt: skip
def test_only_a_caller_address_without_privileges_is_plausible(caller, is_so):
    assert is_believable(caller, networks_of(["10.0.0.0/8"])) == is_so


class Failing(asyncio.Protocol):
    """A protocol that raises an exception."""

    def data_received(self, _data):
        raise ValueError("a fault")


async def test_an_error_in_one_connection_does_not_end_the_others(relay, root):
    protocols = [Failing(), Answering([])]
    head = header_of(CALLER)
    async with (
        opened(relay, root, protocols.pop),
        relay.calling(head + b"one") as (reader, writer),
    ):
        assert await reader.readexactly(7) == b"box|one"
        assert await relay.ask(head + b"two") == b""
        writer.write(b"more")
        assert await reader.readexactly(8) == b"box|more"


async def test_callers_are_accepted_one_after_another(relay, root, monkeypatch):
    """Otherwise, a relay that opens hundreds of connections at once would delay scans."""
    monkeypatch.setattr(line, "_CALLERS_PER_SECOND", 0.001)
    monkeypatch.setattr(line, "_CALLERS_AT_ONCE", 2)
    async with opened(relay, root, partial(Answering, [])):
        for expected in (b"box|", b"box|", b"box|", b""):
            async with relay.calling(header_of(CALLER) + b"x") as (reader, _):
                assert (await reader.read(4)) == expected


class Closing(asyncio.Protocol):
    """A protocol that closes every connection immediately."""

    def connection_made(self, transport):
        transport.abort()


async def test_a_relay_that_never_confirms_a_close_cannot_exhaust_the_box(relay, root, monkeypatch):
    monkeypatch.setattr(line, "_CHANNELS_MAX", 3)
    asked = []
    async with opened(relay, root, Closing, lambda _: asked.append(1) or True):
        [hostile] = relay.lines
        send, dropped = hostile.send_packet, []

        def send_but_no_close(kind, *parts, **options):
            if kind == MSG_CHANNEL_CLOSE:
                dropped.append((kind, *parts))
            else:
                send(kind, *parts, **options)

        async def call(number):
            for _ in range(number):
                with suppress(ConnectionResetError):
                    await relay.ask(header_of(CALLER))

        hostile.send_packet = send_but_no_close
        async with within("the end of all calls"), asyncio.TaskGroup() as calls:
            held = calls.create_task(call(7))
            await relay.until(lambda: len(asked) == 3)
            held.cancel()
        assert len(asked) == 3
        hostile.send_packet = send
        for packet in dropped:
            send(*packet)
        await call(2)
        assert len(asked) == 5


@pytest.mark.parametrize("is_public", [True, False])
async def test_a_relay_cannot_open_a_lan_only_portal_by_claiming_a_lan_address(
    relay, root, tmp_path, clock, is_public
):
    settings = with_settings(server={"public_portal": is_public})
    ask = b"GET /portal/sign-in HTTP/1.1\r\nHost: 192.168.1.10\r\n\r\n"
    async with (
        running_box(tmp_path, clock, settings) as running,
        opened(relay, root, running.client.server.handler),
        relay.calling(header_of("192.168.1.20") + ask) as (reader, _),
    ):
        status = await asyncio.wait_for(reader.readuntil(b"\r\n"), 30.0)
    assert (b" 404 " in status) == (not is_public)


async def test_a_relay_cannot_use_up_the_limits_of_a_caller_on_the_lan(
    relay, root, tmp_path, clock
):
    limits = with_settings(api={"unauthenticated_per_minute": 1})
    async with running_box(tmp_path, clock, limits) as running:
        async with opened(relay, root, running.client.server.handler):
            ask = b"GET /v1/venue HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            for expected in (b" 401 ", b" 429 "):
                async with relay.calling(header_of(HERE) + ask) as (reader, _):
                    assert expected in await asyncio.wait_for(reader.readuntil(b"\r\n"), 30.0)
        async with running.client.get("/v1/venue") as response:
            assert response.status == 401


async def test_an_ssh_server_that_requires_compression_is_refused(root, unused_tcp_port):
    """A few compressed bytes could expand to fill the memory."""
    async with a_relay(unused_tcp_port, compression_algs=["zlib@openssh.com", "zlib"]) as relay:
        joined = relay.admit(root)
        with pytest.raises(asyncssh.KeyExchangeFailed):
            await open_line(joined, root, Failing, lambda _: True)
