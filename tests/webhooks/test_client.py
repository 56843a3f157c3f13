"""One attempt, against receivers that violate the protocol."""

import asyncio
import socket
import struct

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
async def test_any_2xx_is_delivered(client, receiver, status):
    receiver.answers = [an_answer(status)]

    outcome = await client.post(REQUEST)

    assert outcome.delivered
    assert (outcome.phase, outcome.http_status) == ("done", status)
    assert outcome.remote_address == "127.0.0.1"


@pytest.mark.parametrize(
    "status", [300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 410, 413, 429, 500, 502, 503, 999]
)
async def test_any_other_answer_is_a_failure_and_no_redirect_is_followed(
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
async def test_every_clear_end_of_an_answer_keeps_the_connection(
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
async def test_a_reused_connection_that_closes_unanswered_costs_one_redial(
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
async def test_a_head_that_is_not_there_in_time_is_given_up(make_client, receiver, answer, phase):
    receiver.always = answer

    outcome, seconds = await timed(make_client(receiver.url, budgets=SHORT).post(REQUEST))

    assert (outcome.phase, outcome.code) == (phase, "timeout")
    assert SHORT.total <= seconds < LATE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budgets", "code"), [(BUDGETS, "delivered"), (SHORT, "timeout")], ids=["before", "after"]
)
async def test_the_head_decides_whether_it_was_in_time(make_client, receiver, budgets, code):
    receiver.delay = 1.15

    assert (await make_client(receiver.url, budgets=budgets).post(REQUEST)).code == code


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 204 No Content\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbroken",
    ],
    ids=["204 with a body", "broken chunks"],
)
async def test_a_broken_body_in_the_same_packet_as_the_head_is_a_success(client, receiver, answer):
    receiver.always = scripted(answer)

    for _ in range(2):
        assert (await client.post(REQUEST)).delivered
    assert receiver.connections == 2


async def test_a_slow_body_after_200_is_a_success_and_the_connection_is_dropped(client, receiver):
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
        b"HTTP/1.1 200 OK\r\nX: " + bytes(100_000).replace(b"\0", b"y"),
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000,
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ],
    ids=["long header", "many headers", "flood of 1xx", "another protocol", "upgrade"],
)
async def test_what_is_no_answer_is_a_typed_failure(client, receiver, head):
    receiver.always = scripted(head, then="wait")

    outcome, seconds = await timed(client.post(REQUEST))

    assert outcome.code == "protocol"
    assert seconds < LATE


async def test_the_excerpt_is_a_kibibyte_that_no_terminal_stumbles_over(client, receiver):
    receiver.answers = [an_answer(500, body=b"\x1b[31m<b>caf\xc3\xa9\xff\x00" + b"a" * 5000)]

    excerpt = (await client.post(REQUEST)).excerpt

    assert excerpt.startswith("\\x1b[31m<b>café\\xff\\x00aaa")
    assert len(excerpt) < 1100


@pytest.mark.parametrize(
    ("pieces", "then"),
    [((), "close"), ((), "reset"), ((b"HTTP/1.1 200 OK\r\nX:",), "close"),
     ((b"HTTP/1.1 200 OK\r\nX:",), "reset")],
)  # fmt: skip
async def test_a_connection_that_breaks_before_the_head_is_reset(client, receiver, pieces, then):
    receiver.always = scripted(*pieces, then=then)

    assert (await client.post(REQUEST)).code == "reset"


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_sees_no_delivery(
    client, receiver, open_receiver, monkeypatch, name
):
    proxy = await open_receiver()
    monkeypatch.setenv(name, proxy.url)

    await client.post(REQUEST)

    assert len(receiver.requests) == 1
    assert proxy.connections == 0
