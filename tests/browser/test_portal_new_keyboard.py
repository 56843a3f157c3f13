"""A new reservation by keyboard alone: typed, and booked with Enter."""

import re

import pytest

from tests.builders import table_id

MADE = re.compile(r"/portal/reservations/[0-9a-f-]{36}")
SAVE = "form.sheet .buttons button:not([name])"


async def focused(page):
    return await page.evaluate("document.activeElement.name || document.activeElement.tagName")


async def reservations(portal):
    return await portal.box.rows("SELECT customer_name, table_id, slot FROM reservation")


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("role", ["host", "owner"])
async def test_a_free_cell_a_name_and_enter_hold_the_table(portal, role, scripted):
    page = await portal.desk(role, java_script_enabled=scripted)
    await page.goto("/portal/tonight")
    await page.focus(f"#t-{table_id('T3')} a.free[href*='22:00']")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("[name=customer_name]:focus")

    await page.keyboard.type("Karim Alaoui")
    await page.keyboard.press("Enter")
    await page.wait_for_url(MADE)

    assert await reservations(portal) == [("Karim Alaoui", table_id("T3"), "22:00")]
    assert portal.complaints == []


@pytest.mark.parametrize("role", ["host", "owner"])
async def test_n_leads_to_the_name_and_the_button_is_six_tabs_away_at_most(portal, role):
    page = await portal.desk(role)
    await page.goto("/portal/tonight")

    await page.keyboard.press("n")
    await page.wait_for_selector("[name=customer_name]:focus")

    await page.keyboard.type("Karim Alaoui")
    for _ in range(6):
        await page.keyboard.press("Tab")
        if await page.evaluate(f"document.activeElement.matches('{SAVE}')"):
            break
    assert await page.evaluate(f"document.activeElement.matches('{SAVE}')")
    await page.keyboard.press("Enter")  # the browser itself asks for the table
    assert await focused(page) == "table"
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")  # of a list it is no answer to the form
    await page.focus("[name=customer_name]")
    await page.keyboard.press("Enter")
    await page.wait_for_url(MADE)
    assert [name for name, _, _ in await reservations(portal)] == ["Karim Alaoui"]


async def test_the_language_of_the_letter_is_asked_for_once_a_letter_is_wanted(portal):
    page = await portal.desk()
    await page.goto("/portal/reservations/new")
    assert not await page.is_visible("form.sheet [name=language]")

    await page.check("[name=letter]")

    assert await page.is_visible("form.sheet [name=language]")


async def test_what_was_refused_is_where_the_keyboard_goes_on(portal):
    page = await portal.desk()
    await page.goto(f"/portal/reservations/new?table={table_id('T3')}&slot=22:00")
    await page.keyboard.type("Karim Alaoui")
    await page.fill("[name=customer_phone]", "12")

    await page.keyboard.press("Enter")
    await page.wait_for_selector(".problem:focus")

    assert await reservations(portal) == []


async def test_without_a_script_the_free_tables_are_shown_by_their_button(portal):
    page = await portal.desk(java_script_enabled=False)
    await page.goto("/portal/reservations/new?slot=22:00")
    await page.fill("[name=customer_name]", "Karim Alaoui")
    await page.fill("#new-guests", "5")

    await page.click("button[name=offer]")
    await page.wait_for_selector("#none-free")

    assert await page.input_value("[name=customer_name]") == "Karim Alaoui"
    assert await reservations(portal) == []
