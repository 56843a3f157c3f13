"""One attempt, against receivers that violate the protocol."""

import asyncio
import socket
import struct
from dataclasses import replace

import pytest

from tests.webhooks.attempts import BUDGETS, LATE, REQUEST, SHORT, timed
from tests.webhooks.receivers import an_answer


def scripted(*pieces, then=None, pause=0.0):
    """Return a script that writes `pieces`, then closes, resets or waits, as `then` says."""

    async def script(writer, _request):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        if then == "wait":
            await asyncio.sleep(60)
        if then == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        return then is None

    return script


@pytest.mark.parametrize("status", [200, 201, 202, 204, 206, 226, 299])
async def test_any_2xx_status_counts_as_delivered(client, receiver, status):
    receiver.answers = [an_answer(status)]

    outcome = await client.post(REQUEST)

    assert outcome.delivered
    assert (outcome.phase, outcome.http_status) == ("done", status)
    assert outcome.remote_address == "127.0.0.1"


@pytest.mark.parametrize(
    "status", [300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 410, 413, 429, 500, 502, 503, 999]
)
async def test_any_other_status_is_a_failure_and_redirects_are_not_followed(
    client, receiver, open_receiver, status
):
    elsewhere = await open_receiver()
    receiver.answers = [an_answer(status, f"Location: {elsewhere.url}")]

    outcome = await client.post(REQUEST)

    assert not outcome.delivered
    assert (outcome.code, outcome.http_status) == (f"http_{status}", status)
    await asyncio.sleep(0.01)
    assert (len(receiver.requests), elsewhere.connections) == (1, 0)


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        (an_answer(200, body=b"ok"), 1),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 1),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1),
        (scripted(an_answer(200), then="close"), 3),
    ],
    ids=["length", "chunked", "no content", "continue", "early hints", "closed"],
)
async def test_every_response_with_a_clear_end_keeps_the_connection_open(
    client, receiver, answer, connections
):
    receiver.always = answer

    for _ in range(3):
        assert (await client.post(REQUEST)).delivered

    assert (receiver.connections, len(receiver.requests)) == (connections, 3)


@pytest.mark.parametrize(
    ("then", "code", "connections"),
    [
        ([scripted(then="close")], "delivered", 2),
        ([scripted(b"HTTP/1.1 20", then="close")], "reset", 1),
        ([scripted(then="close")] * 2, "reset", 2),
    ],
    ids=["nothing answered", "a little answered", "nothing answered twice"],
)
async def test_a_reused_connection_that_closes_without_a_response_is_dialled_again_once(
    client, receiver, then, code, connections
):
    receiver.answers = [an_answer(200), *then, an_answer(200)]
    await client.post(REQUEST)

    assert (await client.post(REQUEST)).code == code
    assert receiver.connections == connections


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "phase"),
    [
        (scripted(then="wait"), "wait"),
        (scripted(*[bytes([b]) for b in an_answer(200)], pause=0.9), "wait"),  # 36 s
    ],
    ids=["never", "in drops"],
)
async def test_an_attempt_times_out_if_no_status_line_arrives_in_time(
    make_client, receiver, answer, phase
):
    receiver.always = answer

    outcome, seconds = await timed(make_client(receiver.url, budgets=SHORT).post(REQUEST))

    assert (outcome.phase, outcome.code) == (phase, "timeout")
    assert SHORT.total <= seconds < LATE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budgets", "code"), [(BUDGETS, "delivered"), (SHORT, "timeout")], ids=["before", "after"]
)
async def test_a_status_line_before_the_deadline_is_in_time(make_client, receiver, budgets, code):
    receiver.delay = 1.15

    assert (await make_client(receiver.url, budgets=budgets).post(REQUEST)).code == code


OK_LINE, EMPTY = b"HTTP/1.1 200 OK\r\n", b"Content-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    "rest",
    [
        b"X: " + b"y" * 1_000_000 + b"\r\n" + EMPTY,
        b"X: y\r\n" * 100_000 + EMPTY,
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        b"Content-Length:\r\n\r\n",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",
        b"no colon\r\n" + EMPTY,
        b": no name\r\n" + EMPTY,
        b"X: nul\0\r\n" + EMPTY,
        b"X: folded\r\n lines\r\n" + EMPTY,
        b"Transfer-Encoding: chunked\r\n\r\nbroken",
    ],
    ids=["1 MB", "many headers", "length twice", "no length", "length and chunks", "no colon",
         "no name", "nul", "folded", "broken chunks"],
)  # fmt: skip
@pytest.mark.parametrize(("status", "code"), [(b"200", "delivered"), (b"503", "http_503")])
async def test_an_error_after_the_status_line_is_noted_and_closes_the_connection(
    client, receiver, rest, status, code
):
    receiver.always = scripted(OK_LINE.replace(b"200", status) + rest, then="wait")

    for _ in range(2):
        outcome = await client.post(REQUEST)
        assert (outcome.phase, outcome.code) == ("done", code)
        assert f"answered {status.decode()}" in outcome.excerpt
    assert receiver.connections == 2


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 200\r\n" + EMPTY, b"HTTP/1.1 200 \r\n" + EMPTY, b"HTTP/1.1 200 \xe9\r\n" + EMPTY,
     OK_LINE + b"X: " + b"y" * 60_000 + b"\r\n" + EMPTY,
     OK_LINE + b"Set-Cookie: \xe9\r\n" * 99 + EMPTY,
     OK_LINE + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nlie!"],
    ids=["no reason", "empty reason", "latin-1", "60 kB", "many cookies", "gzip lie"],
)  # fmt: skip
async def test_an_unusual_but_readable_response_keeps_the_connection_open(client, receiver, answer):
    receiver.always = answer
    for _ in range(2):
        outcome = await client.post(REQUEST)
        assert outcome.delivered
        assert "answered" not in (outcome.excerpt or "")
    assert receiver.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"HTTP/1.1 204 No Content\r\n\r\nok",
        OK_LINE + b"Content-Length: 9\r\n\r\nok",
        OK_LINE + b"Connection: close\r\n" + EMPTY,
        2 * (OK_LINE + EMPTY),
    ],
    ids=["lf only", "http/1.0", "204 with a body", "too short", "close", "two answers"],
)
async def test_a_response_without_a_clear_end_is_a_success_and_closes_the_connection(
    client, receiver, answer
):
    receiver.always = scripted(answer, then="wait")

    for _ in range(2):
        assert (await client.post(REQUEST)).delivered
    assert receiver.connections == 2


async def test_data_on_an_idle_connection_is_not_taken_as_the_next_response(client, receiver):
    sent = asyncio.Event()

    async def script(writer, _request):
        writer.write(an_answer(200))
        await writer.drain()
        await answered.wait()
        writer.write(an_answer(500))
        await writer.drain()
        sent.set()

    answered, receiver.answers = asyncio.Event(), [script]
    await client.post(REQUEST)
    answered.set()
    await sent.wait()
    await asyncio.sleep(0.01)

    assert (await client.post(REQUEST)).delivered
    assert receiver.connections == 2


async def test_an_idle_connection_is_closed_after_its_time_limit(make_client, receiver):
    client = make_client(receiver.url, budgets=replace(BUDGETS, idle=0.01))
    await client.post(REQUEST)
    await asyncio.sleep(0.05)
    assert (await client.post(REQUEST)).delivered
    assert receiver.connections == 2


async def test_the_receivers_clock_is_read_from_the_date_header(client, receiver):
    receiver.answers = [an_answer(200, "Date: Sat, 21 Nov 2026 19:00:01 GMT")]
    assert (await client.post(REQUEST)).receiver_time == 1_795_287_601_000


async def test_a_slow_body_after_a_200_is_a_success_and_the_connection_is_closed(client, receiver):
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    receiver.always = scripted(start, *[b"x"] * 100, pause=0.4)  # 40 s

    outcome, seconds = await timed(client.post(REQUEST))

    assert outcome.delivered
    assert seconds < LATE
    receiver.always = an_answer(200)
    assert (await client.post(REQUEST)).delivered
    assert receiver.connections == 2


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 20x OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200" + b" " * 100_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000,
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ],
    ids=["no status", "four digits", "http/2", "no end", "flood of 1xx", "another protocol",
         "upgrade"],
)  # fmt: skip
async def test_a_response_that_is_not_http_is_a_protocol_failure(client, receiver, head):
    receiver.always = scripted(head, then="wait")

    outcome, seconds = await timed(client.post(REQUEST))

    assert outcome.code == "protocol"
    assert seconds < LATE


async def test_the_stored_excerpt_is_limited_to_a_kibibyte_without_control_characters(
    client, receiver
):
    receiver.answers = [an_answer(500, body=b"\x1b[31m<b>caf\xc3\xa9\xff\x00" + b"a" * 5000)]

    excerpt = (await client.post(REQUEST)).excerpt

    assert excerpt.startswith("\\x1b[31m<b>café\\xff\\x00aaa")
    assert len(excerpt) < 1100


@pytest.mark.parametrize(
    ("pieces", "then"),
    [((), "close"), ((), "reset"), ((b"HTTP/1.1 200 O",), "close"),
     ((b"HTTP/1.1 200 O",), "reset")],
)  # fmt: skip
async def test_a_connection_closed_before_the_status_line_is_reported_as_reset(
    client, receiver, pieces, then
):
    receiver.always = scripted(*pieces, then=then)

    assert (await client.post(REQUEST)).code == "reset"


@pytest.mark.parametrize("then", ["close", "wait"])
async def test_headers_that_end_after_the_status_line_are_a_success_with_a_note(
    client, receiver, then
):
    receiver.always = scripted(OK_LINE + b"X:", then=then)

    outcome, seconds = await timed(client.post(REQUEST))

    assert outcome.delivered
    assert "answered 200" in outcome.excerpt
    assert seconds < LATE


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY"])
async def test_proxy_variables_of_the_environment_are_ignored(
    client, receiver, open_receiver, monkeypatch, name
):
    proxy = await open_receiver()
    monkeypatch.setenv(name, proxy.url)

    await client.post(REQUEST)

    assert len(receiver.requests) == 1
    assert proxy.connections == 0
