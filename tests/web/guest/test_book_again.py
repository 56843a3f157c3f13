"""A booking page that is sent once more after it has booked: after Back, or out of a tab."""

import re

import pytest

from tests.conftest import with_settings
from tests.web.guest.booking_form import a_form, reservations, send, token_of


@pytest.fixture
def settings():
    return with_settings(booking={"enabled": True})


@pytest.fixture(autouse=True)
def early(clock):
    clock.set("2026-11-21T12:00:00Z")


async def test_a_page_that_has_booked_says_so_and_books_the_other_wish_when_sent_once_more(
    world, guest
):
    form = a_form(await token_of(world, guest))
    await send(guest, form)
    other = {**form, "name": "Nadia Tazi", "when": "22:00"}

    answer = await send(guest, other)
    html = await answer.text()
    world.clock.advance(5)
    fresh = re.search(r'name="token" value="([^"]+)"', html).group(1)
    again = await send(guest, {**other, "token": fresh})

    assert (answer.status, again.status) == (409, 303)
    assert "Cette page a déjà servi à une réservation." in html
    assert 'value="Nadia Tazi"' in html
    assert [(row[1], row[5]) for row in await reservations(world)] == [
        ("19:30", "Youssef El Amrani"), ("22:00", "Nadia Tazi")
    ]  # fmt: skip
