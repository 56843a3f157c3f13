"""The venue's room in a real browser: with the keyboard alone, on a desk and on a tablet."""

import pytest

from appliance.store.venue import list_tables
from tests.browser.accessibility import violations
from tests.browser.keyboard import is_within, press, reach, write
from tests.browser.portal_world import DESK, TABLET

TWENTY = "A1-A12;Allée 1;2;4;standard;300\nB1-B6;Bar 1;1;2;bar\nV1;Salon Zellige;4;10;vip;3000\nV2"
SIZES = pytest.mark.parametrize("size", [DESK, TABLET], ids=["desk", "tablet"])
NEXT_SATURDAY = "2026-11-28"
PAGES = ("/portal/venue", "/portal/venue/slots", "/portal/venue/closings", "/portal/venue/rules")


async def tab_to(page, selector):
    """Press Tab until the focus is there, as somebody without a mouse does."""
    for _ in range(120):
        await page.keyboard.press("Tab")
        if await page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"Tab never reaches {selector}")


async def numbers(portal):
    tables = await portal.box.environment.database.read(list_tables)
    return [table.number for table in tables]


async def test_twenty_tables_are_pasted_looked_at_and_added_without_a_mouse(portal):
    page = await portal.desk(role="manager")
    await page.goto("/portal/venue")

    await tab_to(page, "textarea[name=list]")
    await page.keyboard.insert_text(TWENTY)
    await tab_to(page, "form[action$=preview] button")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("form[action$='/venue/tables'] button")
    assert await violations(page) == []
    assert await numbers(portal) == ["T1", "T2", "T3", "T4", "T5", "T6"]
    await page.keyboard.press("Enter")  # the focus is on "add" already
    await page.wait_for_selector(".note")

    assert len(await numbers(portal)) == 26
    assert await page.locator("[data-table]").count() == 26
    assert portal.complaints == []


async def test_a_list_with_a_fault_says_which_line_and_keeps_what_was_typed(portal):
    page = await portal.desk(role="manager")
    await page.goto("/portal/venue")

    await page.fill("textarea[name=list]", "A1;Allée 1;2;4\nA2;Allée 2;six;8")
    await page.click("form[action$=preview] button")
    await page.wait_for_selector("#faults-title")

    assert "Ligne 2" in await page.inner_text("main")
    assert await page.input_value("textarea[name=list]") == "A1;Allée 1;2;4\nA2;Allée 2;six;8"
    assert await violations(page) == []


async def test_the_arrows_move_a_table_and_the_focus_stays_with_it(portal):
    page = await portal.desk(role="manager")
    await page.goto("/portal/venue")

    await tab_to(page, "[data-table]:nth-child(3) button.step")
    for place in (2, 1):
        async with page.expect_navigation():
            await page.keyboard.press("Enter")
        focused = f"[data-table]:nth-child({place}) button.step"
        if place > 1:  # at the top there is no further up
            assert await page.evaluate("s => document.activeElement.matches(s)", focused)

    assert await numbers(portal) == ["T3", "T1", "T2", "T4", "T5", "T6"]
    assert portal.complaints == []


async def test_a_table_is_dragged_by_its_handle(portal):
    page = await portal.desk(role="manager", viewport=TABLET)
    await page.goto("/portal/venue")
    handle = page.locator("[data-table]:nth-child(5) [data-handle]")
    target = await page.locator("[data-table]:nth-child(2)").bounding_box()

    await handle.hover()
    await page.mouse.down()
    await page.mouse.move(target["x"] + 40, target["y"] + 30, steps=4)
    await page.mouse.move(target["x"] + 40, target["y"] + 5, steps=4)
    async with page.expect_navigation():
        await page.mouse.up()

    assert await numbers(portal) == ["T1", "T5", "T2", "T3", "T4", "T6"]
    assert portal.complaints == []


@SIZES
async def test_a_closing_day_shows_who_is_expected_before_it_is_saved(portal, size):
    guest = await portal.box.guest(date=NEXT_SATURDAY, customer_name="Salma Idrissi")
    page = await portal.desk(role="manager", viewport=size, locale="en-US")
    await page.goto("/portal/venue/closings")

    await tab_to(page, "input[name=first]")
    await page.keyboard.type("11282026")  # as an American browser has it: the page says which day
    await page.locator(".in-words").get_by_text("sam. 28 nov.").wait_for()
    await tab_to(page, "input[name=reason]")
    await page.keyboard.insert_text("Travaux")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#clash-title")
    assert "Salma Idrissi" in await page.inner_text("main")
    assert await page.get_attribute(".clashes a", "href") == f"/portal/reservations/{guest.id}"
    assert await violations(page) == []
    assert await portal.box.rows("SELECT count(*) FROM closing_day") == [(0,)]
    await tab_to(page, "button.danger-button")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".note")

    assert await portal.box.rows("SELECT first_day, reason FROM closing_day") == [
        (NEXT_SATURDAY, "Travaux")
    ]
    assert "Salma Idrissi" in await page.inner_text("main")
    assert await violations(page) == []


@pytest.mark.parametrize("language", ["fr", "ar"])
@pytest.mark.parametrize("options", [{}, {"viewport": TABLET, "color_scheme": "dark"}])
async def test_no_page_of_the_room_has_a_violation_or_is_too_wide(portal, language, options):
    page = await portal.desk(role="owner", language=language, **options)
    [(table_id,)] = await portal.box.rows("SELECT id FROM venue_table WHERE number = 'T1'")
    [(slot_id,)] = await portal.box.rows("SELECT id FROM slot WHERE start = '19:30'")

    for path in (*PAGES, f"/portal/venue/tables/{table_id}", f"/portal/venue/slots/{slot_id}"):
        await page.goto(path)
        assert await violations(page) == [], path
        width = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, path
    assert portal.complaints == []


@SIZES
async def test_the_rules_are_changed_with_the_keyboard_alone(portal, size):
    page = await portal.desk(role="manager", viewport=size, locale="en-US")
    await page.goto("/portal/venue/rules")
    assert await page.inner_text("label:has([name=evening_ends_at]) .in-words") == "06:00"

    await write(page, "request_expiry_hours", "12")
    await write(page, "address", "12 derb El Ferrane")
    await reach(page, page.locator("[name=auto_confirm]"))
    await page.keyboard.press("Space")
    await press(page, "Enregistrer les règles")
    await page.wait_for_selector(".note")

    assert await violations(page) == []
    assert await is_within(page, size["width"])
    assert await portal.box.rows(
        "SELECT request_expiry_hours, address, auto_confirm FROM venue"
    ) == [(12, "12 derb El Ferrane", 0)]
    assert portal.complaints == []
