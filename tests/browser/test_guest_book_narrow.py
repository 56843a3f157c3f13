"""The booking page on the narrowest phones: a year is not cut off."""

import pytest

from tests.browser.guest_look import a_guests_page
from tests.conftest import with_settings


@pytest.fixture
def settings():
    return with_settings(booking={"enabled": True})


@pytest.mark.parametrize(("width", "side_by_side"), [(320, False), (360, True)])
async def test_the_date_has_the_room_that_it_needs(running, browser, width, side_by_side):
    page = await a_guests_page(browser, (width, 640))

    await page.goto(str(running.client.make_url("/book")))

    date = await page.locator("input[type=date]").bounding_box()
    guests = await page.locator("select[name=guests]").bounding_box()
    assert date["width"] >= 140
    assert (date["y"] == guests["y"]) == side_by_side
    assert await page.evaluate("document.documentElement.scrollWidth") == width
