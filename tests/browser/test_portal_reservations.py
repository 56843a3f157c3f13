"""Reservations in the portal, created and edited by keyboard, with and without scripts."""

import re

import pytest

from tests.browser import keyboard
from tests.builders import table_id
from tests.waiting import until

NEW = "/portal/reservations/new"
MADE = re.compile(r"/portal/reservations/[0-9a-f-]{36}")


def chip(reservation):
    return f'table [data-reservation="{reservation.id}"]'


async def open_by_keyboard(page, reservation):
    """Find the guest by the board's search and open the drawer."""
    await page.goto("/portal/tonight")
    await page.keyboard.press("/")
    await page.keyboard.type(reservation.access_code.lower())
    await page.wait_for_selector(f"{chip(reservation)}.found")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#drawer [data-detail]")


async def type_into(page, name, text):
    await keyboard.write(page, name, text, within="#drawer")


async def press(page, label):
    await keyboard.press(page, label, within="#drawer")


async def reservations(portal):
    return await portal.box.rows("SELECT customer_name, table_id, slot FROM reservation")


async def test_a_host_can_accept_move_take_payments_and_check_in_by_keyboard(portal):
    asked = await portal.box.guest(slot="19:30", status="requested", access_code="SVC-2345")
    owed = await portal.box.guest(
        slot="19:30", table="T5", status="pending", guests=4, access_code="SVC-6789"
    )
    page = await portal.desk("host")
    await open_by_keyboard(page, asked)
    await press(page, "Accepter")
    await page.wait_for_selector("#drawer .chip.good")
    await page.wait_for_selector(f"#waiting {chip(asked)[6:]}", state="detached")
    assert (await portal.box.now_of(asked)).status == "confirmed"

    await press(page, "Changer date, heure, table")
    await keyboard.reach(page, page.locator("#drawer [name=table]"))
    await page.keyboard.press("ArrowDown")
    await press(page, "Enregistrer le changement")
    await page.wait_for_selector(f"tr:has(th:has-text('T2')) {chip(asked)[6:]}")
    await page.wait_for_selector(f"tr:has(th:has-text('T1')) {chip(asked)[6:]}", state="detached")

    await open_by_keyboard(page, owed)
    for amount, status, paid in (("200", "partial", "200 MAD"), ("300", "confirmed", "500 MAD")):
        await type_into(page, "amount", amount)
        if status == "partial":
            await keyboard.reach(page, page.locator("#drawer [name=complete]"))
            await page.keyboard.press("Space")
        await press(page, "Enregistrer")
        await page.wait_for_selector(f"#drawer b:has-text('{paid}')")
        assert (await portal.box.now_of(owed)).status == status
    await type_into(page, "arrivals", "3")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(f"{chip(owed)}.partly")
    await press(page, "Annuler l’arrivée")
    await type_into(page, "reason", "autre groupe")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(f"{chip(owed)}:not(.partly)")
    assert (await portal.box.now_of(owed)).arrived == 0
    assert portal.complaints == []


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
async def test_a_free_cell_a_name_and_enter_create_a_reservation(portal, scripted):
    page = await portal.desk("host", java_script_enabled=scripted)
    await page.goto("/portal/tonight")
    await page.focus(f"#t-{table_id('T3')} a.free[href*='22:00']")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("[name=customer_name]:focus")

    await page.keyboard.type("Karim Alaoui")
    await page.keyboard.press("Enter")
    await page.wait_for_url(MADE)

    assert await reservations(portal) == [("Karim Alaoui", table_id("T3"), "22:00")]
    assert portal.complaints == []


async def test_the_free_tables_follow_the_chosen_time_and_a_refused_form_keeps_the_name(portal):
    await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto(f"{NEW}?date=2026-11-21&slot=19:30")
    await page.fill("[name=customer_name]", "Karim")
    offered = "[...document.querySelectorAll('#new-table option')].map((o) => o.text.slice(0, 2))"
    assert "T1" not in await page.evaluate(offered)

    await page.select_option("[name=slot]", "22:00")

    async def has_t1():
        return "T1" in await page.evaluate(offered)

    await until(has_t1)
    await page.select_option("#new-table", table_id("T1"))
    await page.fill("[name=customer_phone]", "12")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("[name=customer_phone][aria-invalid]:focus")
    assert await page.input_value("[name=customer_name]") == "Karim"
    assert await page.input_value("[name=slot]") == "22:00"


async def test_going_back_shows_a_new_form_if_it_was_sent_and_the_typed_one_if_not(
    portal, chromium
):
    # Enable the back/forward cache, as in normal browsers.
    portal.browser = await chromium.launch(ignore_default_args=["--disable-back-forward-cache"])
    page = await portal.desk(language="en")
    await page.add_init_script("addEventListener('pageshow', (e) => { was = e.persisted })")

    async def back():
        await page.evaluate("setTimeout(() => history.back(), 10)")
        await page.wait_for_url(re.compile("/reservations/new"), wait_until="commit")

    await page.goto(f"{NEW}?date=2026-11-28&slot=19:30")
    for number, name in enumerate(("First Guest", "Second Guest"), start=1):
        if number == 2:
            await back()
            await page.wait_for_function(
                "!was && document.querySelector('[name=customer_name]')?.value === ''"
            )
        await page.select_option("#new-table", index=number)
        await page.fill("[name=customer_name]", name)
        await page.click("text=Reserve the table")
        await page.wait_for_selector(f"main h1:has-text('{name}')")
    assert len(await reservations(portal)) == 2

    await page.goto(f"{NEW}?date=2026-11-28&slot=19:30")
    await page.fill("[name=notes]", "Third Guest")  # a search, after which Back reloads the page
    await page.click("text=See this evening")
    await page.wait_for_selector("table")
    await back()
    assert await page.evaluate("was")
    assert await page.input_value("[name=notes]") == "Third Guest"
    await portal.browser.close()


async def test_a_known_caller_fills_in_the_form_after_four_digits(portal):
    await portal.box.guest(slot="19:30", customer_phone="0611137911", customer_name="Omar Tazi")
    page = await portal.desk()
    await page.goto("/portal/reservations/new")

    await page.locator("[name=customer_phone]").press_sequentially("7911")
    await page.locator("#callers button").click()

    assert await page.input_value("[name=customer_name]") == "Omar Tazi"
    assert await page.input_value("[name=customer_phone]") == "0611137911"
    assert await page.locator("#callers button").count() == 0
    assert portal.complaints == []
