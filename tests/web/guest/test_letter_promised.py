"""A letter is promised to a guest only where one can leave."""

import pytest

from tests.conftest import with_settings
from tests.web.guest.booking_form import a_form, send, token_of

PROMISED = "Un e-mail avec tout cela est en route"
KEEP = "aucun e-mail ne suivra"
HOST = {"host": "mail.example", "sender": "riad@mail.example"}


@pytest.fixture(autouse=True)
def early(clock):
    clock.set("2026-11-21T12:00:00Z")


async def page_after_booking(world, guest, path="/book"):
    answer = await send(guest, a_form(await token_of(world, guest, path)), path)
    return await (await guest.get(answer.headers["Location"])).text()


class TestWithoutAMailServer:
    @pytest.fixture
    def settings(self):
        return with_settings(booking={"enabled": True})

    async def test_the_page_asks_to_be_kept(self, world, guest):
        html = await page_after_booking(world, guest)

        assert (PROMISED in html, KEEP in html) == (False, True)

    async def test_the_test_environment_writes_into_its_own_outbox(self, worlds, guest):
        html = await page_after_booking(worlds[1], guest, "/test/book")

        assert (PROMISED in html, KEEP in html) == (True, False)


class TestWithAMailServer:
    @pytest.fixture
    def settings(self):
        return with_settings(booking={"enabled": True}, mail=HOST)

    async def test_the_letter_is_on_its_way(self, world, guest):
        html = await page_after_booking(world, guest)

        assert (PROMISED in html, KEEP in html) == (True, False)
