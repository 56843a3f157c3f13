"""Receivers that answer too much, too little, or the wrong thing (rows 5, 6, 7 and 10)."""

import asyncio
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.appliance.webhooks.attempts import REQUEST
from tests.appliance.webhooks.receivers import OK, a_server, an_answer

FLOOD = Path(__file__).with_name("flood.py")
MEBIBYTE = 1024 * 1024


@pytest.fixture
def flood():
    """`url = flood(kind)`: a receiver of flood.py in a process of its own."""
    started = []

    def start(kind):
        process = subprocess.Popen([sys.executable, FLOOD, kind], stdout=subprocess.PIPE, text=True)
        started.append(process)
        return f"http://127.0.0.1:{int(process.stdout.readline())}/hook"

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def most_memory():
    """The most memory this process ever held since `forget_memory`, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def forget_memory():
    Path("/proc/self/clear_refs").write_text("5")


@pytest.mark.parametrize(
    ("kind", "code"),
    [("body", "delivered"), ("chunks", "delivered"), ("bomb", "delivered"),
     ("header", "protocol"), ("headers", "protocol")],
)  # fmt: skip
async def test_an_answer_of_any_size_costs_less_than_a_mebibyte(
    make_client, receiver, flood, kind, code
):
    assert (await make_client(receiver.url).post(REQUEST)).delivered
    client = make_client(flood(kind))
    forget_memory()
    before = most_memory()

    outcomes = [await client.post(REQUEST) for _ in range(10)]

    assert [outcome.code for outcome in outcomes] == [code] * 10
    assert all(len(outcome.excerpt or "") <= 4 * 1024 for outcome in outcomes)
    assert most_memory() - before < MEBIBYTE


def reset(writer):
    """Have the connection end in RST instead of FIN."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


async def reset_on_accept(_reader, writer):
    reset(writer)


async def reset_after_request(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    reset(writer)


async def reset_within_answer(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-")
    await writer.drain()
    await asyncio.sleep(0.05)
    reset(writer)


async def end_before_answer(reader, writer):
    await reader.readuntil(b"\r\n\r\n")


@pytest.mark.parametrize(
    "fault", [reset_on_accept, reset_after_request, reset_within_answer, end_before_answer]
)
@pytest.mark.parametrize("draw", [0.0, 0.5, 0.999])
async def test_a_broken_connection_is_a_reset_and_tried_again_after_a_minute(
    world, uptime, change_outside, fault, draw
):
    change_outside(draw=lambda: draw)
    async with a_server(fault) as port:
        await world.register(f"http://127.0.0.1:{port}/hook")
        await world.start()
        await world.book()
        await world.recorded(1)
        await world.until(lambda: uptime.next_alarm is not None)

        assert world.attempts() == [(1, "reset")]
        assert 60 <= uptime.next_alarm <= 66

        uptime.advance(uptime.next_alarm)
        await world.recorded(2)
        assert world.rows("SELECT attempts, state FROM delivery") == [(2, "pending")]
        await world.stop()


async def test_a_connection_that_died_while_idle_costs_one_redial_and_no_attempt(world, receiver):
    async def close_silently(_writer, _request):
        return False

    receiver.answers = [OK, close_silently, OK]
    await world.register(receiver.url)
    await world.start()
    await world.book()
    await world.settled("delivered")

    await world.book()
    await world.settled("delivered", "delivered")

    assert receiver.connections == 2
    assert len(receiver.requests) == 3
    assert world.attempts() == [(1, "delivered")] * 2
    assert world.rows("SELECT attempts FROM delivery") == [(1,)] * 2


async def test_a_receiver_that_closes_after_each_answer_is_dialled_once_for_each(world, receiver):
    async def answer_and_close(writer, _request):
        writer.write(OK)
        await writer.drain()
        return False

    receiver.always = answer_and_close
    await world.register(receiver.url)
    await world.start()

    for number in range(1, 6):
        await world.book()
        await world.settled(*["delivered"] * number)

    assert len(receiver.requests) == 5
    assert world.rows("SELECT DISTINCT attempts FROM delivery") == [(1,)]


ANSWERS = {
    "flood of 1xx": (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 10_000, "protocol"),
    "continue": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, "delivered"),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", "delivered"),
    "205": (b"HTTP/1.1 205 Reset Content\r\n\r\n", "delivered"),
    "299": (an_answer(299), "delivered"),
    "304": (b"HTTP/1.1 304 Not Modified\r\n\r\n", "http_304"),
    "410": (an_answer(410), "http_410"),
    "429": (an_answer(429, "Retry-After: 3600"), "http_429"),
    "503": (an_answer(503, "Retry-After: Sun, 22 Nov 2026 00:00:00 GMT"), "http_503"),
    "999": (an_answer(999), "http_999"),
}


@pytest.mark.parametrize(("answer", "code"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_each_odd_answer_has_its_outcome_and_the_ladder_is_that_of_the_contract(
    world, receiver, uptime, answer, code
):
    receiver.always = answer
    await world.register(receiver.url)
    await world.start()

    await world.book()
    await world.recorded(1)

    assert world.attempts() == [(1, code)]
    if code == "delivered":
        assert world.states() == ["delivered"]
        assert uptime.next_alarm is None
    else:
        await world.until(lambda: uptime.next_alarm is not None)
        assert world.states() == ["pending"]
        assert uptime.next_alarm == 60
