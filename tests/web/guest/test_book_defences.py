"""A booking form that no guest has filled in, or that comes too often, books nothing."""

import re

import pytest

from tests.builders import table_id
from tests.conftest import with_settings
from tests.web.guest.booking_form import a_form, reservations, send, token_of


@pytest.fixture
def settings():
    return with_settings(booking={"enabled": True, "hourly_for_address": 1000, "hourly": 1000})


@pytest.mark.usefixtures("early")
async def test_a_program_that_fills_in_everything_books_nothing(world, guest):
    answer = await send(guest, a_form(await token_of(world, guest), website="https://spam.example"))

    assert answer.status == 400
    assert await reservations(world) == []


@pytest.mark.usefixtures("early")
async def test_a_form_sent_faster_than_anybody_types_books_nothing_until_it_comes_again(
    world, guest
):
    html = await (await guest.get("/book")).text()
    form = a_form(re.search(r'name="token" value="([^"]+)"', html).group(1))

    hasty = await send(guest, form)
    world.clock.advance(2)
    later = await send(guest, form)

    assert (hasty.status, later.status) == (400, 303)
    assert len(await reservations(world)) == 1


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("token", ["", "x" * 44, None])
async def test_a_form_that_this_box_never_showed_books_nothing(world, guest, token):
    answer = await send(guest, a_form(token))

    assert answer.status == 400
    assert await reservations(world) == []


@pytest.mark.usefixtures("early")
async def test_a_form_of_yesterday_is_shown_again_with_all_that_was_typed(world, guest):
    token = await token_of(world, guest)
    world.clock.advance(7 * 3600)

    answer = await send(guest, a_form(token, when="22:00"))
    html = await answer.text()

    assert answer.status == 400
    assert 'value="Youssef El Amrani"' in html
    assert token not in html


@pytest.mark.usefixtures("early")
async def test_a_form_of_another_site_books_nothing(world, guest):
    form = a_form(await token_of(world, guest))

    answer = await send(guest, form, **{"Sec-Fetch-Site": "cross-site"})

    assert answer.status == 403
    assert await reservations(world) == []


@pytest.mark.usefixtures("early")
async def test_looking_at_what_is_free_changes_nothing(world, guest):
    before = await world.database.read(lambda reader: reader.connection.serialize("main"))

    for query in ("", "?date=2026-11-22", "?date=x&guests=x", "?guests=99999999999999"):
        assert (await guest.get(f"/book{query}")).status == 200

    after = await world.database.read(lambda reader: reader.connection.serialize("main"))
    assert after == before


@pytest.mark.usefixtures("early")
async def test_what_a_guest_typed_stays_text(world, guest):
    nasty = '"><script>alert(1)</script>'

    answer = await send(guest, a_form(await token_of(world, guest), name=nasty, email="x"))

    assert "<script>alert" not in await answer.text()


class TestWithALimit:
    @pytest.fixture
    def settings(self):
        return with_settings(booking={"enabled": True, "hourly_for_address": 2})

    async def test_the_third_form_of_an_hour_waits_for_the_next(self, world, guest, clock):
        clock.set("2026-11-21T12:00:00Z")
        answers = []
        for number in ("T1", "T2", "T3"):
            form = a_form(await token_of(world, guest), **{"table-19:30": table_id(number)})
            answers.append(await send(guest, form))
        clock.advance(3600)
        later = await send(guest, form)

        assert [answer.status for answer in answers] == [303, 303, 429]
        assert 'value="Youssef El Amrani"' in await answers[2].text()
        assert later.status == 303
