"""Receivers that take their time (rows 1 to 4): in full ten seconds each, else scaled down."""

import asyncio
import contextlib
import time
from dataclasses import replace

import pytest

from tests.appliance.webhooks.attempts import REQUEST, timed
from tests.appliance.webhooks.receivers import a_server, an_answer
from tests.faults.webhooks.patience import BUDGETS, EARLY, LATE, TOTAL
from tests.soak.scale import FULL

NEAR = (0.99, 1.01) if FULL else (0.5, 1.5)


class Hanging:
    """A receiver that answers nothing, and notes how long each request was waited for."""

    def __init__(self):
        self.held = []
        self.at_once = 0
        self.most_at_once = 0

    async def converse(self, reader, _writer):
        await reader.readuntil(b"\r\n\r\n")
        begun = time.monotonic()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await reader.read()  # the rest of the request, and the end of the connection
        self.at_once -= 1
        self.held.append(time.monotonic() - begun)


async def test_a_receiver_that_never_answers_is_given_up_in_time_and_delays_no_other(
    world, open_receiver, patient
):
    hung, others = Hanging(), [await open_receiver() for _ in range(4)]
    async with a_server(hung.converse) as port:
        for url in (f"http://127.0.0.1:{port}/", *(other.url for other in others)):
            await world.register(url)
        await world.start()

        await world.book(40)
        for other in others:
            await other.got(40)
        await world.until(lambda: world.attempts().count((1, "timeout")) >= 8, TOTAL + 5)
        await world.until(lambda: len(hung.held) >= 8)
        await world.stop(0)

    assert hung.most_at_once == 8
    assert min(hung.held[:8]) >= TOTAL - EARLY
    assert max(hung.held[:8]) <= TOTAL + LATE
    assert all(len(other.requests) == 40 for other in others)


@pytest.mark.parametrize(("part", "code"), [(NEAR[0], "delivered"), (NEAR[1], "timeout")])
async def test_an_answer_just_in_time_delivers_and_one_just_too_late_does_not(
    make_client, receiver, part, code
):
    receiver.delay = TOTAL * part
    in_time = code == "delivered" and not FULL  # a machine that stands still is no late answer
    budgets = replace(BUDGETS, total=TOTAL + LATE) if in_time else BUDGETS

    outcome, seconds = await timed(make_client(receiver.url, budgets=budgets).post(REQUEST))

    assert outcome.code == code
    assert seconds <= TOTAL + LATE


async def test_a_body_in_drops_after_200_is_delivered_and_cut_off(make_client, receiver):
    closed_after = []

    async def drip(writer, _request):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        begun = time.monotonic()
        with contextlib.suppress(OSError):
            while not writer.transport.is_closing():
                writer.write(b"x")
                await asyncio.sleep(BUDGETS.drain / 4)
        closed_after.append(time.monotonic() - begun)
        return False

    receiver.always = drip
    outcome = await make_client(receiver.url, budgets=BUDGETS).post(REQUEST)
    async with asyncio.timeout(5 + LATE):
        while not closed_after:  # noqa: ASYNC110 - the receiver hears of it by itself
            await asyncio.sleep(0.01)

    assert (outcome.code, outcome.http_status) == ("delivered", 200)
    assert closed_after[0] <= BUDGETS.drain * 1.25 + LATE


async def test_a_head_in_drops_does_not_buy_time(make_client, receiver):
    async def drip(writer, _request):
        with contextlib.suppress(OSError):
            for byte in an_answer(200, "X-Filler: " + "x" * 100):
                writer.write(bytes([byte]))
                await asyncio.sleep(TOTAL / 10)
        return False

    receiver.always = drip

    outcome, seconds = await timed(make_client(receiver.url, budgets=BUDGETS).post(REQUEST))

    assert (outcome.phase, outcome.code) == ("wait", "timeout")
    assert TOTAL - EARLY <= seconds <= TOTAL + LATE
