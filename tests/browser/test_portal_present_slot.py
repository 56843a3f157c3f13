"""On a phone the board begins with the slot that is on, not with the first of the day."""

import pytest

PHONE = {"width": 390, "height": 844}


@pytest.mark.parametrize("language", ["fr", "ar"])
async def test_a_phone_shows_the_present_slot_beside_the_tables(portal, language):
    portal.box.clock.set("2026-11-22T19:00:00Z")  # a Sunday, which began with a brunch
    page = await portal.desk(language=language, viewport=PHONE, has_touch=True)
    await page.goto("/portal/tonight")
    await page.wait_for_function("() => document.querySelector('.board-frame').scrollLeft !== 0")

    present = await page.locator("thead th[aria-current=time]").bounding_box()
    tables = await page.locator("tbody th").first.bounding_box()

    corner = await page.locator("thead th").first.bounding_box()
    assert (corner["x"], corner["width"]) == (tables["x"], tables["width"])

    begins = present["x"] if language == "fr" else tables["x"]
    ends = tables["x"] + tables["width"] if language == "fr" else present["x"] + present["width"]
    assert begins == pytest.approx(ends, abs=2)
    assert present["x"] >= 0
    assert present["x"] + present["width"] <= PHONE["width"]
    assert portal.complaints == []


async def test_a_desk_shows_all_of_them(portal):
    portal.box.clock.set("2026-11-22T19:00:00Z")
    page = await portal.desk()
    await page.goto("/portal/tonight")
    await page.wait_for_selector("thead th[aria-current=time]")

    assert await page.evaluate("document.querySelector('.board-frame').scrollLeft") == 0
