"""Mail servers that hang, drip or ponder: nobody waits for long, and no letter leaves twice."""

import asyncio
import time

from appliance.store.letters import find_letter
from tests.appliance.mail.mail_servers import (
    Handler,
    converse,
    pass_time,
    pump,
    raw_server,
    settle,
    smtp_server,
)


async def test_a_server_that_accepts_and_says_nothing_is_given_five_seconds_in_total(deliver):
    async def silent(reader, _writer):
        await reader.read()

    async with raw_server(silent) as port:
        before = time.monotonic()
        outcome, row, _ = await deliver(port)
        took = time.monotonic() - before

    assert outcome == "failed"
    assert row.state == "waiting"
    assert 4.9 < took < 40  # the server itself is given 60 s


async def test_a_server_that_drips_byte_by_byte_does_not_stretch_the_deadline(deliver):
    async def dripping(_reader, writer):
        while True:
            writer.write(b"2")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with raw_server(dripping) as port:
        before = time.monotonic()
        outcome, _, _ = await deliver(port, answer_within=0.3)
        assert time.monotonic() - before < 30  # the server itself is given 60 s
    assert outcome == "failed"


async def test_after_a_hang_the_retry_in_the_background_succeeds(deliver, clock, letter_row):
    async with smtp_server() as (healthy, handler):

        async def hang_once(reader, writer):
            if not hung:
                hung.append(True)
                await reader.read()
                return
            upstream, downstream = await asyncio.open_connection("127.0.0.1", healthy)
            try:
                await asyncio.gather(pump(upstream, writer), pump(reader, downstream))
            finally:
                downstream.close()

        hung = []
        async with raw_server(hang_once) as port:
            outcome, row, postman = await deliver(
                port, answer_within=0.1, deadlines={"speak_within": 0.5}
            )
            assert outcome == "failed"
            await settle(postman)
            assert letter_row(row.id).trouble == "the mail server did not answer in time"

            postman._server._speak_within = 60
            await pass_time(postman, clock, 60)

    assert letter_row(row.id).state == "sent"
    assert len(handler.envelopes) == 1


async def test_a_server_that_hangs_at_the_goodbye_has_taken_the_letter(deliver):
    async with raw_server(lambda r, w: converse(r, w, until="accepted")) as port:
        outcome, row, _ = await deliver(port)

    assert (outcome, row.state) == ("sent", "sent")


async def test_a_server_that_hangs_over_a_letter_is_left_in_the_end(deliver):
    async def swallow(reader, writer):
        await converse(reader, writer, until="body")
        await reader.read()

    async with raw_server(swallow) as port:
        outcome, row, postman = await deliver(
            port, answer_within=0.1, deadlines={"take_within": 0.5}
        )
        assert (outcome, row.state) == ("failed", "waiting")
        await settle(postman)

    trouble = postman._environment.database.peek(find_letter, row.id).trouble
    assert trouble == "the mail server did not answer in time"


async def test_a_server_that_ponders_over_a_letter_is_not_given_it_twice(deliver, letter_row):
    class Pondering(Handler):
        async def handle_DATA(self, server, session, envelope):  # noqa: N802
            await asyncio.sleep(4)
            return await super().handle_DATA(server, session, envelope)

    async with smtp_server(Pondering()) as (port, handler):
        outcome, row, postman = await deliver(
            port, answer_within=0.1, deadlines={"speak_within": 3.0}
        )
        assert outcome == "failed"
        await settle(postman)

    assert letter_row(row.id).state == "sent"
    assert len(handler.envelopes) == 1
