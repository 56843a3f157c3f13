"""The portal in a manager's hand: 390 px wide, worked with a finger."""

import pytest

from appliance.actions.issue_terminal import issue_terminal
from tests.browser.accessibility import violations
from tests.browser.keyboard import is_within

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
ROOMS = ["tonight", "reservations", "venue", "door", "integrations", "people", "box"]
SMALL = """() => [...document.querySelectorAll("main a, main button, main summary")]
  .filter((one) => one.checkVisibility())
  .filter((one) => one.getBoundingClientRect().height < 43.5)
  .map((one) => one.innerText)"""


async def test_every_room_is_in_sight_and_no_page_is_wider_than_the_phone(portal):
    await portal.box.guest(slot="19:30", customer_name="Salma Bennani")
    page = await portal.desk(**PHONE)
    for room in [*ROOMS, "tonight/sheet", "reservations/new", "venue/slots", "people/log"]:
        await page.goto(f"/portal/{room}")

        assert await is_within(page, 390), room
        for way in await page.locator(".areas a").all():
            box = await way.bounding_box()
            assert box["x"] >= 0, room
            assert box["x"] + box["width"] <= 390, room
            assert await way.evaluate("one => one.scrollWidth <= one.clientWidth"), room
    assert portal.complaints == []


@pytest.mark.parametrize("language", ["fr", "ar"])
async def test_the_menu_of_the_person_stays_on_the_screen(portal, language):
    page = await portal.desk(language=language, **PHONE)
    for start in ("/portal/tonight", "/test/portal/tonight"):
        await page.goto(start)
        await page.click(".me summary")

        box = await page.locator(".menu").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert await is_within(page, 390)
    assert await violations(page) == []


async def test_what_a_finger_presses_is_high_enough(portal):
    await portal.box.guest(slot="19:30", customer_name="Salma Bennani")
    page = await portal.desk(**PHONE)
    for room in ["tonight", "reservations", "venue", "venue/slots", "door", "people", "box"]:
        await page.goto(f"/portal/{room}")

        assert await page.evaluate(SMALL) == [], room


async def test_a_table_that_goes_on_beside_the_screen_says_so_by_a_shadow(portal):
    await portal.box.guest(slot="19:30", customer_name="Salma Bennani")
    page = await portal.desk(**PHONE)
    await page.goto("/portal/reservations")

    scroller = page.locator(".scroller")

    assert await scroller.evaluate("one => one.scrollWidth > one.clientWidth")
    shadow = await scroller.evaluate("one => getComputedStyle(one).backgroundAttachment")
    assert shadow == "local, local, scroll, scroll"


async def test_before_an_evening_is_closed_a_long_name_stays_within_its_sheet(portal):
    name = "Donaudampfschifffahrtsgesellschaftskapitän"
    await portal.box.guest(date="2026-12-24", slot="19:30", customer_name=name)
    page = await portal.desk(**PHONE)
    await page.goto("/portal/venue/closings")
    await page.fill("[name=first]", "2026-12-24")
    await page.fill("[name=last]", "2026-12-24")
    await page.click("main form[action$=closings] button")

    link = await page.locator(".clashes a").bounding_box()
    sheet = await page.locator(".sheet").bounding_box()

    assert link["x"] + link["width"] <= sheet["x"] + sheet["width"]


async def test_a_terminal_with_a_long_name_does_not_widen_the_log_of_the_door(portal):
    name = "Entrée du jardin, côté de la rue des Bouchers"
    await portal.box.environment.database.write(issue_terminal, name)
    page = await portal.desk(**PHONE)

    await page.goto("/portal/door/log")

    assert await is_within(page, 390)
