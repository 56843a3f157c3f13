"""Malformed HTTP gets the documented error; idle connections do not lock out other clients."""

import asyncio
import contextlib
import gzip
import json
import socket

import pytest
from aiohttp import web

from appliance.http.request import BY_RELAY
from tests.app.processes import Serving
from tests.journeys.box_process import found_box
from tests.waiting import within
from web.connection import Connection, ConnectionLimit

SECRET = "svc_live_0123456789abcdef"
HEAD = b"GET /v1/venue HTTP/1.1\r\nHost: localhost\r\n"
MALFORMED = {
    "no HTTP at all": f"{SECRET}\r\n\r\n".encode(),
    "another protocol": bytes.fromhex("16030100a5010000a10303") + SECRET.encode(),
    "a control character": HEAD + f"Authorization: Bearer {SECRET}\x01\r\n\r\n".encode(),
    "a name with a space": HEAD + f"Bad name {SECRET}: 1\r\n\r\n".encode(),
    "a link that never ends": f"GET /access/{SECRET}{'a' * 9000} HTTP/1.1\r\n\r\n".encode(),
    "an unknown expectation": HEAD + f"Expect: {SECRET}\r\n\r\n".encode(),
    "two lengths": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no chunk": HEAD + f"Transfer-Encoding: chunked\r\n\r\nzz{SECRET}\r\n\r\n".encode(),
}


def new_box(folder):
    """The data directory of a new box."""
    return found_box(folder).data


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    """The real program, shared by most tests of this file."""
    data = new_box(tmp_path_factory.mktemp("malformed"))
    with Serving("--data", str(data), "--host", "127.0.0.1", "--port", "0") as found:
        yield found


def send(port, raw):
    """Send a request and read until the connection ends. Return (status line, headers, body)."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(raw)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *headers = head.decode().split("\r\n")
    return status, headers, body


@pytest.mark.process
@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_request_that_is_not_http_gets_the_documented_error_body(serving, raw):
    status, headers, body = send(serving.port, raw)
    assert "400" in status
    assert json.loads(body).keys() == {"error", "error_en", "code"}
    assert json.loads(body)["code"] == "VALIDATION_ERROR"
    assert "Server: venuebox" in headers
    assert "X-Content-Type-Options: nosniff" in headers


def cookies(size):
    """Return Cookie headers of other sites of the same domain with this total length in bytes."""
    return b"".join(b"Cookie: c%02d=" % n + b"x" * 4000 + b"\r\n" for n in range(size // 4013))


def page_head(path):
    accept = b"Accept: text/html,*/*"
    return b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + accept


@pytest.mark.process
@pytest.mark.parametrize("path", [b"/", b"/door", b"/portal/sign-in", b"/me"])
@pytest.mark.parametrize("header", [b"Cookie: a=" + b"x" * 65_000 + b"\r\n", cookies(64_000)])
def test_a_request_with_cookies_of_other_sites_on_its_domain_is_accepted(serving, path, header):
    status, _, body = send(serving.port, page_head(path) + b"\r\n" + header + b"\r\n")

    assert status.split()[1] in {"200", "303"}
    assert status.split()[1] == "303" or b"<html" in body


@pytest.mark.process
@pytest.mark.parametrize("header", [b"Cookie: a=" + b"x" * 66_000 + b"\r\n", cookies(68_300)])
def test_headers_over_64_kb_get_status_431_and_browsers_get_a_page(serving, header):
    as_page = send(serving.port, page_head(b"/me") + b"\r\n" + header + b"\r\n")
    late = send(serving.port, HEAD + header + b"Accept: text/html\r\n\r\n")
    as_json = send(serving.port, HEAD + b"Accept: */*\r\n" + header + b"\r\n")

    assert "431" in late[0]
    assert b"<html" in late[2]
    assert "431" in as_page[0]
    assert b'<section lang="ar" dir="rtl">' in as_page[2]
    assert b"/static/" not in as_page[2]  # a larger one would be refused too
    assert "431" in as_json[0]
    assert json.loads(as_json[2])["code"] == "VALIDATION_ERROR"


@pytest.mark.process
def test_a_browser_gets_a_page_for_a_malformed_request(serving):
    status, _, body = send(serving.port, page_head(b"/trust") + b"\r\nBad name: 1\r\n\r\n")

    assert "400" in status
    assert b'<section lang="fr"' in body


@pytest.mark.process
def test_a_compressed_body_is_refused_without_decompressing_it(serving):
    body = gzip.compress(json.dumps({"code": "12345678"}).encode())
    head = (
        "POST /terminal/v1/pair HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    )

    status, _, answer = send(serving.port, head.encode() + body)

    assert "400" in status
    assert json.loads(answer)["code"] == "INVALID_JSON"


@pytest.mark.process
def test_an_incomplete_body_and_invalid_chunks_log_no_error(tmp_path):
    data = new_box(tmp_path)
    with Serving("--data", str(data), "--host", "127.0.0.1", "--port", "0") as serving:
        head = b"POST /terminal/v1/pair HTTP/1.1\r\nHost: localhost\r\n"
        with socket.create_connection(("127.0.0.1", serving.port)) as broken:
            broken.sendall(head + b'Content-Length: 100\r\n\r\n{"code"')
        send(serving.port, head + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcdeXX\r\n")
        for raw in MALFORMED.values():
            send(serving.port, raw)

        serving.terminate()

        assert serving.complaint() == ""


@contextlib.asynccontextmanager
async def a_server(connection, answer):
    """Serve connections with `connection(inner)`, whose handler is `answer`. Yield the address."""
    inner = web.Server(answer)
    loop = asyncio.get_running_loop()
    async with await loop.create_server(lambda: connection(inner), "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()
        await inner.shutdown(0)
        await asyncio.sleep(0)


async def test_an_idle_new_connection_is_closed_and_an_active_one_is_kept(monkeypatch):
    monkeypatch.setattr("web.connection._FIRST_REQUEST_SECONDS", 0.1)

    async def answer(_request: web.BaseRequest) -> web.Response:
        await asyncio.sleep(0.3)
        return web.Response()

    def connection(inner):
        return Connection(inner, ConnectionLimit(9), keep_alive=5)

    async with a_server(connection, answer) as address:
        silent, silent_out = await asyncio.open_connection(*address)
        silent_out.write(b"GET / HTTP/1.1\r\nHost: b")
        asking = socket.create_connection(address)
        asking.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")  # before the server accepts it
        answered, asking_out = await asyncio.open_connection(sock=asking)

        try:
            async with within("the end of the silent connection"):
                assert await silent.read() == b""
                assert (await answered.readline()).startswith(b"HTTP/1.1 200")
        finally:
            for out in (silent_out, asking_out):
                out.close()
                await out.wait_closed()


class Held(ConnectionLimit):
    """A connection limit with events for opened and closed connections."""

    def __init__(self):
        super().__init__(9)
        self.come, self.gone = asyncio.Event(), asyncio.Event()

    def enter(self, connection):
        self.come.set()
        return super().enter(connection)

    def leave(self, connection):
        super().leave(connection)
        self.gone.set()


async def test_a_client_that_never_reads_its_answer_is_disconnected(monkeypatch):
    monkeypatch.setattr("web.connection._READING_SECONDS", 0.2)
    held = Held()

    async def answer(_request: web.BaseRequest) -> web.Response:
        return web.Response(body=bytes(8_000_000))  # more than both socket buffers hold

    def connection(inner):
        return Connection(inner, held, keep_alive=5)

    async with a_server(connection, answer) as address:
        with socket.socket() as asking:
            asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            asking.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(asking, address)
            await loop.sock_sendall(
                asking, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            )
            async with within("the end of the connection"):
                await held.come.wait()
                await held.gone.wait()


class Peer(asyncio.Transport):
    """A connection from `address`."""

    def __init__(self, address, **extra):
        super().__init__({"peername": (address, 50_000), **extra})
        self.is_open = True

    def abort(self):
        self.is_open = False


def enter(limit, *addresses):
    """Open a connection from each address. Return the connections, and which were accepted."""
    peers = [Peer(address) for address in addresses]
    entered = [limit.enter(peer) for peer in peers]
    assert [peer for peer, let_in in zip(peers, entered, strict=True) if let_in] == [
        peer for peer in peers if peer.is_open
    ]
    return peers, entered


def test_a_device_at_its_connection_limit_does_not_block_others():
    limit = ConnectionLimit(10, per_address=2)
    assert enter(limit, *["192.168.1.5"] * 3)[1] == [True, True, False]
    assert enter(limit, "192.168.1.6")[1] == [True]


def test_a_relay_that_reports_a_phones_address_does_not_reduce_the_phones_connections():
    limit = ConnectionLimit(10, per_address=1)
    assert limit.enter(Peer("192.168.1.5", **{BY_RELAY: True}))
    assert enter(limit, "192.168.1.5")[1] == [True]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.7", "2001:db8::7"])
def test_a_proxy_has_only_the_total_connection_limit(address):
    limit = ConnectionLimit(9, ["10.0.0.0/8", "2001:db8::7"], per_address=1)
    assert enter(limit, *[address] * 10)[1] == [True] * 9 + [False]
    assert limit.speaks_for_many(Peer(address))
    assert not limit.speaks_for_many(Peer("192.168.1.5"))


def test_a_device_that_changes_its_ipv6_address_still_counts_as_one_device():
    limit = ConnectionLimit(100, per_address=2)
    peers, entered = enter(limit, *[f"2001:db8::{number:x}" for number in range(10)])
    assert entered == [True] * 8 + [False] * 2
    assert enter(limit, "2001:db8:0:1::1")[1] == [True]
    limit.leave(peers[0])
    assert enter(limit, "2001:db8::99")[1] == [True]


@pytest.mark.parametrize("addresses", [11, 250])
def test_a_new_connection_replaces_the_oldest_one_of_the_busiest_client(addresses):
    limit = ConnectionLimit(2048)
    crowd = [enter(limit, *[f"10.0.0.{number}"] * 200)[0] for number in range(addresses)]
    held = [peer for peers in crowd for peer in peers if peer.is_open]
    most = max(sum(peer.is_open for peer in peers) for peers in crowd)

    _, entered = enter(limit, *[f"192.168.1.{number}" for number in range(40)])

    assert len(held) == 2048
    assert entered == [True] * 40
    assert sum(peer.is_open for peer in held) == 2048 - 40
    assert max(sum(peer.is_open for peer in peers) for peers in crowd) <= most
    assert not any(peers[0].is_open for peers in crowd if sum(p.is_open for p in peers) < most)
