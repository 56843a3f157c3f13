"""A new reservation in a browser: what was chosen is never exchanged for something else."""

import re
from datetime import date

from appliance.actions.close_days import close_days
from tests.browser.accessibility import violations
from tests.builders import table_id

SUNDAY, MONDAY = "2026-11-22", "2026-11-23"
NEW = "/portal/reservations/new"


async def test_an_hour_that_the_other_day_lacks_is_asked_for_again_and_the_table_stays(portal):
    page = await portal.desk()
    await page.goto(f"{NEW}?date={SUNDAY}&slot=12:00&table={table_id('T3')}")
    await page.fill("[name=customer_name]", "Karim Alaoui")

    await page.fill("#new-date", MONDAY)
    await page.wait_for_selector("#slot-said .warning")

    assert await page.inner_text("#slot-said") == (
        "12:00 n’est pas proposé ce jour-là. Choisissez une heure."
    )
    assert await page.input_value("#new-slot") == ""
    assert await violations(page) == []
    await page.click("form.sheet .buttons .button")  # the browser itself asks for the hour
    assert await portal.box.rows("SELECT 1 FROM reservation") == []
    await page.select_option("#new-slot", "22:00")
    await page.wait_for_selector(
        f"#new-table option[value='{table_id('T3')}'][selected]", state="attached"
    )
    assert await page.input_value("#new-table") == table_id("T3")
    assert await page.inner_text("#slot-said") == ""
    async with page.expect_navigation(url=re.compile("note=entered")):  # it is said once
        await page.click("form.sheet .buttons .button")
    [(day, slot)] = await portal.box.rows("SELECT date, slot FROM reservation")
    assert (day, slot) == (MONDAY, "22:00")
    assert portal.complaints == []


async def test_a_closed_day_is_said_as_soon_as_it_is_chosen_and_enter_makes_nothing(portal):
    await portal.box.environment.database.write(
        close_days, date.fromisoformat(MONDAY), date.fromisoformat(MONDAY), "Travaux"
    )
    page = await portal.desk()
    await page.goto(f"{NEW}?date={SUNDAY}&slot=22:00&table={table_id('T3')}")
    await page.fill("[name=customer_name]", "Karim Alaoui")

    await page.fill("#new-date", MONDAY)
    await page.wait_for_selector("#slot-said .warning bdi:has-text('Travaux')")
    await page.focus("[name=customer_name]")
    await page.keyboard.press("Enter")

    assert await page.evaluate("document.activeElement.name") == "table"
    assert await page.input_value("#new-table") == ""
    assert await violations(page) == []
    assert await portal.box.rows("SELECT 1 FROM reservation") == []
    await page.fill("#new-date", SUNDAY)
    await page.wait_for_selector("#slot-said .warning", state="detached")
    await page.wait_for_function(
        f"document.querySelector('#new-table').value === '{table_id('T3')}'"
    )
