"""Forms sent by bots, and too many forms, book nothing."""

import re
from datetime import date, timedelta
from itertools import count

import pytest

from appliance.reservations.change import cancel
from tests.app.guest.booking_form import a_form, cookie_of, reservations, rows, send, token_of
from tests.builders import TONIGHT
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


async def test_a_bot_that_fills_in_every_field_books_nothing(world, guest):
    answer = await send(guest, a_form(await token_of(world, guest), website="https://spam.example"))
    assert answer.status == 400
    assert await reservations(world) == []


async def test_a_form_submitted_too_fast_books_only_when_submitted_again(world, guest):
    html = await (await guest.get("/book")).text()
    form = a_form(re.search(r'name="token" value="([^"]+)"', html).group(1))

    hasty = await send(guest, form)
    world.clock.advance(2)
    later = await send(guest, form)

    assert (hasty.status, later.status) == (400, 303)
    assert len(await reservations(world)) == 1


@pytest.mark.parametrize("token", ["", "x" * 44, None])
async def test_a_form_that_this_box_never_issued_books_nothing(world, guest, token):
    answer = await send(guest, a_form(token))
    assert answer.status == 400
    assert await reservations(world) == []


async def test_a_form_of_yesterday_is_shown_again_with_everything_that_was_typed(world, guest):
    token = await token_of(world, guest)
    world.clock.advance(7 * 3600)

    answer = await send(guest, a_form(token, when="22:00"))
    html = await answer.text()

    assert answer.status == 400
    assert 'value="Youssef El Amrani"' in html
    assert token not in html


async def test_viewing_availability_changes_nothing(world, guest):
    before = await world.database.read(lambda reader: reader.connection.serialize("main"))
    for query in ("", "?date=2026-11-22", "?date=x&guests=x", "?guests=99999999999999"):
        assert (await guest.get(f"/book{query}")).status == 200
    after = await world.database.read(lambda reader: reader.connection.serialize("main"))
    assert after == before


class TestBehindOneAddress:
    """A carrier puts thousands of phones behind one address. They do not share one limit."""

    @pytest.fixture
    def settings(self):
        return with_settings(
            booking={"open_for_address": 8, "hourly_for_address": 12},
            server={"trusted_proxies": ("127.0.0.1",)},
        )

    @pytest.fixture
    def book(self, world, guest):
        """Return `book(address)`, with which a new guest at that address books another evening."""
        numbers = count(1)

        async def send_from(address, **changes):
            number = next(numbers)
            day = date.fromisoformat(TONIGHT) + timedelta(number)
            who = {"email": f"guest.{number}@example.org", **changes}
            form = a_form(new_token(world.environment), date=day.isoformat(), **who)
            world.clock.advance(2)
            return (await send(guest, form, **{"X-Forwarded-For": address})).status

        return send_from

    async def test_an_address_has_a_limit_of_open_bookings_and_cancelling_one_allows_another(
        self, world, book
    ):
        answers = [await book("203.0.113.5") for _ in range(9)]
        assert answers == [303] * 8 + [429]
        [(first,), *_] = await rows(world, "SELECT id FROM reservation ORDER BY seq")

        await world.database.write(cancel, first, actor="guest")

        assert [await book("203.0.113.5") for _ in range(2)] == [303, 429]
        assert await book("203.0.113.6") == 303

    @pytest.mark.parametrize(
        "spellings",
        [({"phone": "0612345678", "email": ""}, {"phone": "+212 6 12 34 56 78", "email": ""}),
         ({"email": "Salma@Example.org"}, {"email": "salma@example.org"}),
         ({"email": "salma@café.ma"}, {"email": "salma@xn--caf-dma.ma"})],
    )  # fmt: skip
    async def test_a_guest_can_have_six_open_bookings_over_all_addresses_together(
        self, book, spellings
    ):
        answers = [await book(f"203.0.113.{n}", **spellings[n % 2]) for n in range(7)]

        assert answers == [303] * 6 + [429]
        assert await book("203.0.113.6") == 303  # another guest behind the same address

    async def test_a_browser_can_have_six_open_bookings_with_any_contact_data(
        self, world, guest, book
    ):
        first = await send(guest, a_form(await token_of(world, guest)))
        guest.session.headers.update(cookie_of(first))

        assert [await book(f"203.0.113.{n}") for n in range(7)] == [303] * 5 + [429] * 2
