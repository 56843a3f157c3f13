"""Forms from programs, and too many forms, book nothing."""

import asyncio
import re
from datetime import UTC, datetime, timedelta

import pytest

from appliance.reservations.change import cancel
from tests.app.guest.booking_form import a_form, cookie_of, reservations, rows, send, token_of
from tests.builders import table_id
from tests.conftest import set_rules, with_settings
from web.guest.booking_form import new_token


@pytest.fixture
def settings():
    return with_settings(booking={"hourly_for_address": 1000, "hourly": 1000})


@pytest.fixture(autouse=True)
async def booking_page(box):
    await set_rules(box.live, booking_page=1)


@pytest.fixture(autouse=True)
def early(clock):
    clock.set("2026-11-21T12:00:00Z")


async def test_a_program_that_fills_in_everything_books_nothing(world, guest):
    answer = await send(guest, a_form(await token_of(world, guest), website="https://spam.example"))
    assert answer.status == 400
    assert await reservations(world) == []


async def test_a_form_sent_too_fast_books_nothing_until_it_is_sent_again(world, guest):
    html = await (await guest.get("/book")).text()
    form = a_form(re.search(r'name="token" value="([^"]+)"', html).group(1))

    hasty = await send(guest, form)
    world.clock.advance(2)
    later = await send(guest, form)

    assert (hasty.status, later.status) == (400, 303)
    assert len(await reservations(world)) == 1


@pytest.mark.parametrize("token", ["", "x" * 44, None])
async def test_a_form_that_this_box_never_showed_books_nothing(world, guest, token):
    answer = await send(guest, a_form(token))
    assert answer.status == 400
    assert await reservations(world) == []


async def test_a_form_of_yesterday_is_shown_again_with_all_that_was_typed(world, guest):
    token = await token_of(world, guest)
    world.clock.advance(7 * 3600)

    answer = await send(guest, a_form(token, when="22:00"))
    html = await answer.text()

    assert answer.status == 400
    assert 'value="Youssef El Amrani"' in html
    assert token not in html


async def test_looking_at_what_is_free_changes_nothing(world, guest):
    before = await world.database.read(lambda reader: reader.connection.serialize("main"))
    for query in ("", "?date=2026-11-22", "?date=x&guests=x", "?guests=99999999999999"):
        assert (await guest.get(f"/book{query}")).status == 200
    after = await world.database.read(lambda reader: reader.connection.serialize("main"))
    assert after == before


async def test_what_a_guest_typed_stays_text(world, guest):
    nasty = '"><script>alert(1)</script>'
    answer = await send(guest, a_form(await token_of(world, guest), name=nasty, email="x"))
    assert "<script>alert" not in await answer.text()


class TestWithALimit:
    @pytest.fixture
    def settings(self):
        return with_settings(booking={"hourly_for_address": 2})

    async def test_the_third_form_of_an_hour_waits_for_the_next(self, world, guest, clock):
        answers = []
        for number in ("T1", "T2", "T3"):
            form = a_form(await token_of(world, guest), **{"table-19:30": table_id(number)})
            answers.append(await send(guest, form))
        clock.advance(3600)
        later = await send(guest, form)

        assert [answer.status for answer in answers] == [303, 303, 429]
        assert 'value="Youssef El Amrani"' in await answers[2].text()
        assert later.status == 303


class TestFromManyAddresses:
    @pytest.fixture
    def settings(self):
        return with_settings(
            booking={
                "open_for_address": 8,
                "hourly_for_address": 12,
                "hourly": 24,
            },
            server={"trusted_proxies": ("127.0.0.1",)},
        )

    @pytest.fixture
    def book(self, world, guest, clock):
        """Return `book(address)`: another guest at that address books for a new evening."""
        days = iter(range(1, 400))

        async def send_from(address, **changes):
            day = datetime.fromtimestamp(clock.now() / 1000, UTC).date() + timedelta(next(days))
            who = {"email": f"guest.{day:%m%d}@example.org", **changes}
            form = a_form(new_token(world.environment), date=day.isoformat(), **who)
            world.clock.advance(2)
            return await send(guest, form, **{"X-Forwarded-For": address})

        return send_from

    async def test_one_address_holds_its_limit_and_a_cancelled_booking_makes_room(
        self, world, book
    ):
        answers = [await book("203.0.113.5") for _ in range(10)]
        assert [answer.status for answer in answers] == [303] * 8 + [429] * 2
        assert len(await reservations(world)) == 8
        ids = await rows(world, "SELECT id FROM reservation")

        await world.database.write(cancel, ids[0][0], actor="guest")

        assert [(await book("203.0.113.5")).status for _ in range(2)] == [303, 429]
        assert (await book("203.0.113.6")).status == 303

    @pytest.mark.parametrize(
        "contacts",
        [{"phone": "0612345678", "email": ""}, {"email": "Salma@Example.org"}],
    )
    async def test_one_guest_holds_six_bookings_at_all_addresses_together(self, book, contacts):
        same = [contacts, {name: text.swapcase() for name, text in contacts.items()}]
        if "phone" in contacts:
            same[1]["phone"] = "+212 6 12 34 56 78"

        answers = [await book(f"203.0.113.{n}", **same[n % 2]) for n in range(7)]

        assert [answer.status for answer in answers] == [303] * 6 + [429]
        assert (await book("203.0.113.1")).status == 303  # another guest there

    async def test_one_browser_holds_six_bookings_with_whatever_contacts(self, guest, book):
        first = await book("203.0.113.1")
        guest.session.headers.update(cookie_of(first))

        answers = [(await book(f"203.0.113.{n}")).status for n in range(2, 9)]

        assert answers == [303] * 5 + [429] * 2

    async def test_many_forms_at_once_hold_no_more_than_one_after_the_other(self, world, book):
        await asyncio.gather(*(book("203.0.113.5") for _ in range(12)))
        assert len(await reservations(world)) == 8

    async def test_an_ipv6_network_is_one_address(self, book):
        answers = [(await book(f"2001:db8::{number:x}")).status for number in range(9)]
        assert answers == [303] * 8 + [429]
        assert (await book("2001:db8:0:1::1")).status == 303

    async def test_the_busiest_addresses_use_up_nobody_elses_hour(self, world, book):
        crowd = [f"203.0.113.{number}" for number in range(10)]
        used = [(await book(address)).status for address in crowd for _ in range(6)]

        again = [(await book(address)).status for address in crowd]
        newcomers = [(await book(f"198.51.100.{number}")).status for number in range(30)]

        assert used.count(303) < 60
        assert again == [429] * 10
        assert newcomers == [303] * 30
        assert (await book("198.51.100.1")).status == 429
        world.clock.advance(3600)
        assert (await book("198.51.100.1")).status == 303

    async def test_no_mailbox_is_written_to_more_than_six_times_a_day(self, world, book):
        for number in range(12):
            answer = await book(f"203.0.113.{number}", email=f"Victim+{number}@example.org")
            assert answer.status == 303
        ids = await rows(world, "SELECT id FROM reservation")
        for (id_,) in ids:
            await world.database.write(cancel, id_, actor="guest")
        assert len(await rows(world, "SELECT 1 FROM email")) == 6

        assert (await book("203.0.113.99", email="somebody@example.org")).status == 303
        assert len(await rows(world, "SELECT 1 FROM email")) == 7
        world.clock.advance(86_400)
        assert (await book("203.0.113.98", email="victim@example.org")).status == 303
        assert len(await rows(world, "SELECT 1 FROM email")) == 8
