"""The relay: who may join, what it passes on and to whom, and its limits."""

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import replace

import aiohttp
import asyncssh
import pytest
from asyncssh.packet import UInt32

from appliance.core.network import own_addresses
from appliance.http.request import networks_of
from tests.app.relay.relay_world import HERE, SECONDS, TOKEN, a_relay
from tests.app.relay.test_hello import HELLO, hello_for
from web.relay import dial, router, server
from web.relay.dial import Refused, is_believable
from web.relay.server import Limits

UNKNOWN_NAME, AWAY = b"\x15\x03\x03\x00\x02\x02\x70", b"\x15\x03\x03\x00\x02\x02\x50"
A, B = "a.example", "b.example"
MSG_CHANNEL_OPEN_CONFIRMATION, MSG_CHANNEL_WINDOW_ADJUST, MSG_CHANNEL_CLOSE = 91, 93, 97


async def test_each_box_gets_what_is_for_its_name_unchanged(relay):
    _, seen_a = await relay.connected(A)
    _, seen_b = await relay.connected(B)
    for_a, for_b = hello_for(A), hello_for(B)

    assert await relay.ask(for_a) == b"a.example|tls|" + for_a
    assert await relay.ask(for_b) == b"b.example|tls|" + for_b

    assert [data for _, data in seen_a] == [for_a]
    assert [data for _, data in seen_b] == [for_b]


async def test_a_home_that_cannot_be_entered_does_not_matter(relay, monkeypatch):
    monkeypatch.setenv("HOME", f"/{'x' * 256}")

    await relay.connected(A)


async def test_a_name_server_that_does_not_answer_does_not_matter(relay, monkeypatch):
    looked_up = []
    monkeypatch.setattr("socket.getfqdn", lambda: looked_up.append(1) or "relay")

    await relay.connected(A)

    assert looked_up == []


@pytest.mark.parametrize("vanishes", [False, True])
async def test_the_box_is_told_who_calls_and_a_caller_leaves_nothing_behind(relay, vanishes):
    _, seen = await relay.connected(A)
    traffic = relay.boxes.traffic[A]

    async with relay.call() as (reader, writer):
        caller = writer.get_extra_info("sockname")
        writer.write(hello_for(A))
        await reader.read(1)
        assert traffic.open == 1
        if vanishes:
            writer.transport.abort()
        else:
            writer.write_eof()
            await asyncio.wait_for(reader.read(), SECONDS)
    await relay.until(lambda: traffic.open == 0)

    assert seen[0][0] == caller
    assert traffic.connections == 1


async def test_a_box_may_not_have_the_connections_to_another_name(relay):
    access, seen = await relay.connected(A)
    await relay.connected(B)

    with pytest.raises(Refused):
        await relay.dial(replace(access, name=B))

    assert (await relay.ask_for(B)).startswith(b"b.example|tls|")
    assert seen == []


@pytest.mark.parametrize(
    ("exchange", "refusal"),
    [
        ("curve25519-sha256", asyncssh.PermissionDenied),  # the only one of OpenSSH 9.2 that fits
        ("diffie-hellman-group18-sha512", asyncssh.KeyExchangeFailed),
        ("rsa2048-sha256", asyncssh.KeyExchangeFailed),
    ],
)
async def test_a_stranger_cannot_choose_a_slow_key_exchange(relay, exchange, refusal):
    options = {"known_hosts": None, "client_keys": [], "agent_path": None, "config": []}

    with pytest.raises(refusal):
        await asyncssh.connect(
            HERE, relay.address.port, username="box", kex_algs=[exchange], **options
        )


async def test_the_newest_connection_of_a_box_counts_and_the_older_one_is_told(relay):
    access = await relay.enrol(A)
    older, seen_before = await relay.dial(access)
    _, seen = await relay.dial(access)

    with pytest.raises(Refused) as refused:
        await asyncio.wait_for(older.wait_lost(), SECONDS)

    assert refused.value.reason == "relay_replaced"
    await relay.ask_for(A)
    assert len(seen) == 1
    assert seen_before == []


async def test_an_enrolled_box_may_nothing_else_at_the_relay(relay):
    access = await relay.enrol(A)
    key = asyncssh.import_private_key(access.key)
    options = {"username": "box", "client_keys": [key], "known_hosts": None, "agent_path": None}
    async with asyncssh.connect(HERE, relay.address.port, config=[], **options) as connection:
        for command in ("id", None, "scp -t ."):
            with pytest.raises(asyncssh.ChannelOpenError):
                async with asyncio.timeout(SECONDS):
                    await connection.create_process(command)
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_connection(HERE, relay.status)
        for host, port in ((A, 22), (A, 8443), ("", 443), ("0.0.0.0", 443)):  # noqa: S104
            with pytest.raises(asyncssh.ChannelListenError):
                await connection.create_server(lambda *_: None, host, port)
    for user in ("root", "join-", "join-00"):
        with pytest.raises(asyncssh.PermissionDenied):
            await asyncssh.connect(
                HERE, relay.address.port, config=[], **(options | {"username": user})
            )


async def test_a_name_that_is_not_enrolled_is_closed_and_a_box_that_is_away_is_refused(relay):
    await relay.connected(A)
    await relay.enrol(B)

    assert await relay.ask_for("c.example") == UNKNOWN_NAME
    assert await relay.ask_for("x.a.example") == UNKNOWN_NAME
    assert await relay.ask_for(B) == AWAY
    assert (relay.router.closed_heads, relay.boxes.traffic[B].refused) == (2, 1)


@pytest.mark.parametrize(
    ("data", "answers"),
    [(b"GET / HTTP/1.1\r\n\r\n", {b""}), (HELLO[:9] + b"\xff" * 3000, {b""}),
     (b"\x16\x03\x01\x40\x00\x01\x00\x3f\xf0" + bytes(20_000), {b"", UNKNOWN_NAME})],
)  # fmt: skip
async def test_a_malformed_hello_or_one_above_16_kib_is_closed(relay, data, answers):
    assert await relay.ask(data) in answers
    assert relay.router.closed_heads == 1


async def test_a_hello_that_does_not_end_is_closed(relay, monkeypatch):
    monkeypatch.setattr(router, "_HEAD_SECONDS", 0.05)
    assert await relay.ask(HELLO[:40]) == b""
    assert relay.router.closed_heads == 1


async def test_a_connection_without_traffic_is_closed(relay, monkeypatch):
    monkeypatch.setattr(router, "_IDLE_SECONDS", 0.2)
    await relay.connected(A)
    async with relay.call() as (reader, writer):
        writer.write(hello_for(A))
        await asyncio.wait_for(reader.read(), SECONDS)


async def test_a_box_has_a_limited_number_of_connections_and_others_are_not_affected(tmp_path):
    async with a_relay(tmp_path, Limits(connections=1)) as relay:
        await relay.connected(A)
        await relay.connected(B)
        async with relay.call() as (reader, writer):
            writer.write(hello_for(A))
            await reader.read(1)

            assert await relay.ask_for(A) == b""
            assert relay.boxes.traffic[A].refused == 1
            assert await relay.ask_for(B) != b""
        await relay.until(lambda: relay.boxes.traffic[A].open == 0)

        assert await relay.ask_for(A) != b""


async def test_one_address_cannot_lock_the_others_out_of_a_box(tmp_path, monkeypatch):
    monkeypatch.setattr("web.connection.is_loopback", lambda _address: False)
    async with a_relay(tmp_path, Limits(connections=8)) as relay, AsyncExitStack() as held:
        await relay.connected(A)

        async def call_from(address):
            caller = relay.call(local_addr=(address, 0))
            reader, writer = await held.enter_async_context(caller)
            writer.write(hello_for(A))
            with suppress(ConnectionResetError):
                return await asyncio.wait_for(reader.read(1), SECONDS)
            return b""

        assert [await call_from("127.0.0.5") for _ in range(5)] == [b"a"] * 4 + [b""]
        for others in ("127.0.0.6", "127.0.0.7"):
            assert [await call_from(others) for _ in range(2)] == [b"a", b"a"]
        assert relay.boxes.traffic[A].open == 8
        assert await call_from("127.0.0.9") == b"a"


class Hostile:
    """A connected box that drops what it should send, by the number of the SSH message."""

    def __init__(self, connection):
        self.connection, self._send = connection, connection.send_packet
        self.drops = set()
        connection.send_packet = self._send_some

    def _send_some(self, kind, *parts, **options):
        if kind not in self.drops:
            self._send(kind, *parts, **options)


@pytest.fixture
async def hostile(relay):
    dialled, _ = await relay.dial(await relay.enrol(A))
    return Hostile(dialled._connection)


@pytest.mark.parametrize("drops", [MSG_CHANNEL_CLOSE, MSG_CHANNEL_OPEN_CONFIRMATION])
async def test_a_box_that_confirms_nothing_is_cut(relay, hostile, monkeypatch, drops):
    monkeypatch.setattr(router, "_OPEN_SECONDS", 0.05)
    monkeypatch.setattr(router, "_CONFIRM_SECONDS", 0.05)
    hostile.drops = {drops}

    await relay.ask_for(A)

    await asyncio.wait_for(hostile.connection.wait_closed(), SECONDS)
    await relay.until(lambda: relay.boxes.traffic[A].open == 0)


async def test_a_channel_counts_until_the_box_has_confirmed_its_end(relay, hostile):
    relay.boxes.limits.connections = 8
    hostile.drops = {MSG_CHANNEL_CLOSE}
    traffic = relay.boxes.traffic[A]

    for _ in range(17):
        await relay.ask_for(A)

    assert traffic.refused == 1
    assert traffic.open == traffic.connections == 16
    assert len(relay.boxes.connection(A)._channels) == 16


async def test_a_late_answer_of_a_box_leaves_no_channel_behind(relay, hostile, monkeypatch):
    monkeypatch.setattr(router, "_OPEN_SECONDS", 0.05)
    late = []
    send = hostile._send
    hostile._send = lambda kind, *parts, **options: (
        late.append((kind, *parts))
        if kind == MSG_CHANNEL_OPEN_CONFIRMATION
        else send(kind, *parts, **options)
    )

    assert await relay.ask_for(A) == b""
    for packet in late:
        send(*packet)

    await relay.until(lambda: relay.boxes.traffic[A].open == 0)
    assert len(late) == 1
    assert not relay.boxes.connection(A)._channels


async def test_a_box_that_reads_nothing_is_cut(relay, hostile):
    relay.boxes.limits.connections = 2  # its share of the relay's memory
    relay.boxes.limits.bytes_per_second = 1 << 30
    async with relay.call() as (reader, writer):
        writer.write(hello_for(A))
        await reader.read(1)
        (channel,) = hostile.connection._channels.values()
        channel.send_packet(MSG_CHANNEL_WINDOW_ADJUST, UInt32(0x7FFFFFFF))
        cut = relay.boxes.connection(A)
        hostile.connection._transport.pause_reading()
        for side in (cut, hostile.connection):
            side.set_keepalive(0)

        with suppress(ConnectionError):
            for _ in range(200):
                writer.write(bytes(65536))
                await asyncio.wait_for(writer.drain(), SECONDS)
        await relay.until(lambda: relay.boxes.connection(A) is None)


async def test_a_box_that_asks_for_nothing_is_cut(relay, monkeypatch):
    access, _ = await relay.connected(B)
    key = asyncssh.import_private_key(access.key)
    options = {"username": "box", "client_keys": [key], "known_hosts": None, "agent_path": None}
    async with asyncssh.connect(HERE, relay.address.port, config=[], **options) as idle:
        monkeypatch.setattr(server, "_ASK_SECONDS", 0.0)

        await asyncio.wait_for(idle.wait_closed(), SECONDS)

    assert (await relay.ask_for(B)).startswith(b"b.example|")


async def test_little_of_an_answer_is_under_way_at_once(relay):
    """Otherwise a few downloads on a slow line keep the next caller waiting too long."""
    under_way = []

    class Sending(asyncio.Protocol):
        def connection_made(self, transport):
            transport.write(bytes(1_000_000))
            under_way.append(1_000_000 - transport.get_write_buffer_size())

    access = await relay.enrol(A)
    relay.dialled.append(await dial.dial(access, Sending, Sending, lambda _caller: True))

    await relay.ask_for(A)

    assert under_way[0] <= 64 * 1024


async def test_a_box_has_a_limited_bandwidth(tmp_path):
    async with a_relay(tmp_path, Limits(bytes_per_second=50_000)) as relay:
        await relay.connected(A)
        loop = asyncio.get_running_loop()
        async with relay.call() as (reader, writer):
            writer.write(hello_for(A))
            await reader.read(65536)
            began = loop.time()
            writer.write(bytes(100_000))
            received = 0
            while received < 100_000:
                received += len(await asyncio.wait_for(reader.read(65536), SECONDS))

        # 200,000 bytes in both directions; one second's worth may have been saved up.
        assert loop.time() - began >= 2.5


async def test_one_address_opens_a_limited_number_of_connections_a_minute(tmp_path):
    async with a_relay(tmp_path, per_minute=2) as relay:
        _, seen = await relay.connected(A)
        for _ in range(3):
            await relay.ask_for(A)

        assert len(seen) == 2


async def test_one_address_has_a_limited_number_of_open_connections(tmp_path):
    address = next(text for text in own_addresses() if ":" not in text)
    async with a_relay(tmp_path, host=address, per_address=1) as relay:
        _, seen = await relay.connected(A)
        async with relay.call() as (reader, writer):
            writer.write(hello_for(A))
            await reader.read(1)

            assert await relay.ask_for(A) == b""
        await relay.until(lambda: relay.boxes.traffic[A].open == 0)
        await relay.ask_for(A)

    assert len(seen) == 2


async def test_a_box_refuses_callers_who_are_told_and_forgets_them(relay):
    asked = []
    dialled, _ = await relay.dial(await relay.enrol(A), asked.append)

    assert [await relay.ask_for(A) for _ in range(3)] == [AWAY] * 3
    assert asked == [HERE] * 3
    await relay.until(lambda: not dialled._connection._channels)


@pytest.mark.parametrize(
    ("caller", "is_so"),
    [
        ("203.0.113.9", True),
        ("2001:db8::9", True),
        ("192.168.1.9", True),
        ("127.0.0.1", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("0.0.0.0", False),  # noqa: S104 - an address that is claimed
        ("224.0.0.1", False),
        ("10.0.0.7", False),  # a trusted proxy
        ("::ffff:10.0.0.7", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_a_relay_cannot_claim_an_address_with_rights(caller, is_so):
    assert is_believable(caller, networks_of(["10.0.0.0/8"])) == is_so


@pytest.mark.parametrize(
    ("request_line", "name", "status"),
    [(b"GET /x?y=z", A, b"308"), (b"POST /v1/x", A, b"403"), (b"GET /", "c.example", b"421")],
)
async def test_plain_http_is_redirected_unless_data_was_sent_or_the_name_is_unknown(
    relay, request_line, name, status
):
    _, seen = await relay.connected(A)

    asked = request_line + b" HTTP/1.1\r\nHost: " + name.encode() + b"\r\n\r\n"
    answer = await relay.ask(asked, relay.http)

    assert answer.split(b" ")[1] == status
    assert (b"\r\nLocation: https://a.example/x?y=z\r\n" in answer) == (status == b"308")
    assert seen == []


async def test_an_acme_challenge_reaches_the_box_and_nothing_behind_it_does(relay):
    _, seen = await relay.connected(A)
    challenge = b"GET /.well-known/acme-challenge/t HTTP/1.1\r\nHost: a.example\r\n"

    answer = await relay.ask(
        challenge + b"X-Forwarded-For: 127.0.0.1\r\n\r\nGET /portal HTTP/1.1\r\n\r\n", relay.http
    )

    assert answer.startswith(b"a.example|plain|" + challenge)
    assert [data for _, data in seen] == [challenge + b"Connection: close\r\n\r\n"]


async def test_the_status_page_and_the_metrics_are_for_this_machine_or_the_token(relay):
    await relay.connected(A)
    await relay.enrol(B)
    url = f"http://{HERE}:{relay.status}"
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession() as session:
        for path in ("/", "/metrics", "/health"):
            for headers, status in (
                ({}, 200), ({"Host": "rebound.example"}, 404),
                ({"Host": "rebound.example", "Authorization": "Bearer no"}, 404),
                ({"Host": "relay.example"} | bearer, 200),
            ):  # fmt: skip
                async with session.get(url + path, headers=headers) as response:
                    assert response.status == status, (path, headers)
        async with session.get(f"{url}/metrics") as response:
            metrics = await response.text()
        async with session.get(url) as response:
            page = await response.text()

    assert 'venuebox_relay_box_connected{name="a.example"} 1.0' in metrics
    assert 'venuebox_relay_box_connected{name="b.example"} 0.0' in metrics
    assert A in page
    assert B in page
