"""kill -9 while letters leave: each arrives, and only one in flight may arrive twice.

Between the mail server's "250" and the row that remembers it lies a moment that no program can
close. Such a letter has the same Message-ID, and only a connection that was open can have one.
"""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from email import message_from_bytes

import pytest

from appliance.mail.postman import FRESH_AT_ONCE
from tests.appliance.mail.mail_servers import Handler, smtp_server, until
from tests.journeys.box_process import BoxProcess, found_box
from tests.journeys.partner_side import calling

LETTERS = 12


class SlowHandler(Handler):
    """Takes its time over each letter, and remembers them in the order of its answers."""

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        await asyncio.sleep(0.1)
        return await super().handle_DATA(server, session, envelope)

    @property
    def taken(self):
        return [message_from_bytes(e.content)["Message-ID"] for e in self.envelopes]


@asynccontextmanager
async def a_box_that_writes(folder):
    async with smtp_server(SlowHandler()) as (port, mail):
        settings = {
            "VENUEBOX_MAIL_HOST": "127.0.0.1",
            "VENUEBOX_MAIL_PORT": str(port),
            "VENUEBOX_MAIL_SECURITY": "none",
            "VENUEBOX_MAIL_SENDER": "tables@riad.example",
        }
        founded = await asyncio.to_thread(found_box, folder, LETTERS)
        box = BoxProcess(founded.data, log=folder / "box.log", settings=settings)
        try:
            await asyncio.to_thread(box.start)
            async with calling(box, founded, "live") as (partner, door):
                yield box, partner, door, mail
        finally:
            await asyncio.to_thread(box.kill)


async def book_every_table(partner, door):
    """As many bookings at once as there are tables; answers that the kill cut off are lost."""
    tables = (await partner.must(200, "GET", "/v1/venue"))["tables"]
    evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
    bodies = [
        {"tableId": table["id"], "date": evening, "guests": 2, "idempotencyKey": f"k-{n}",
         "customer": {"name": "Salma", "email": f"guest{n}@guests.example"}}
        for n, table in enumerate(tables)
    ]  # fmt: skip
    calls = [partner.must(201, "POST", "/v1/reservations", body) for body in bodies]
    return asyncio.gather(*calls, return_exceptions=True)


def check_once_each(taken, before, in_flight):
    """Every letter has come; twice only what was in flight at the kill, and nothing thrice."""
    counted = Counter(taken)
    twice = {letter for letter, count in counted.items() if count > 1}
    print(f"\n{len(counted)} letters, {len(twice)} of them twice, {before} before the kill")
    assert len(counted) == LETTERS
    assert max(counted.values()) <= 2
    assert twice <= set(taken[max(0, before - in_flight) : before + in_flight])
    assert len(twice) <= in_flight


@pytest.mark.parametrize("seen", [1, 5])
async def test_a_kill_among_new_letters_repeats_only_those_in_flight(tmp_path, seen):
    async with a_box_that_writes(tmp_path) as (box, partner, door, mail):
        booking = await book_every_table(partner, door)
        await until(lambda: len(mail.envelopes) >= seen)

        await asyncio.to_thread(box.kill)
        before = len(mail.envelopes)
        await booking
        booked = await restart_and_count(box, partner)
        await until(lambda: len(set(mail.taken)) >= booked)
        await asyncio.sleep(0.5)  # what was there twice would come now

        check_once_each(mail.taken, before, FRESH_AT_ONCE + 1)


async def test_a_kill_in_the_middle_of_a_backlog_repeats_at_most_one(tmp_path):
    async with a_box_that_writes(tmp_path) as (box, partner, door, mail):
        mail.mail = "530 5.7.0 sign in first"
        await (await book_every_table(partner, door))
        await asyncio.to_thread(box.kill)
        assert mail.envelopes == []

        mail.mail = "250 OK"
        await asyncio.to_thread(box.start)
        await until(lambda: len(mail.envelopes) >= 4)
        await asyncio.to_thread(box.kill)
        before = len(mail.envelopes)
        await asyncio.to_thread(box.start)
        await until(lambda: len(set(mail.taken)) >= LETTERS)
        await asyncio.sleep(0.5)

        check_once_each(mail.taken, before, 1)


async def restart_and_count(box, partner):
    """How many bookings survived: every one that was answered, perhaps more."""
    await asyncio.to_thread(box.start)
    return (await partner.must(200, "GET", "/v1/reservations"))["total"]
