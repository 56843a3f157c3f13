"""Forms from programs, and too many forms, book nothing."""

import re

import pytest

from tests.app.guest.booking_form import a_form, reservations, send, token_of
from tests.conftest import set_rules, with_settings


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
