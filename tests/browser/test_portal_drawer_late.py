"""An answer that comes when the drawer shows another reservation: it takes nothing from there."""

import asyncio

from tests.browser.test_portal_drawer_typing import NOTES, open_drawer
from tests.browser.test_portal_tonight import chip

ANSWERED = """() => void (window.answered = new Promise((done) => {
  document.addEventListener("htmx:finally:request", () => done());
}))"""


async def send_slowly(portal, page, box_answers):
    """Press what corrects the reservation; the box answers once `box_answers` is set."""

    async def hold(route):
        await box_answers.wait()
        await route.continue_()

    await page.route("**/amend", hold)
    await page.click("#drawer form[action$='/amend'] button")


async def look_at(page, reservation):
    await page.evaluate(
        "id => document.querySelector(`[data-reservation='${id}']`).click()", reservation.id
    )
    await page.wait_for_selector(f"#drawer [data-detail='{reservation.id}']")


async def test_what_is_done_by_then_leaves_the_drawer_to_who_types_there(portal):
    salma = await portal.box.guest(slot="19:30", notes="Près de la fenêtre")
    nadia = await portal.box.guest(slot="19:30", table="T2")
    page, answers = await open_drawer(portal, salma), asyncio.Event()
    await page.fill(NOTES, "sans gluten")
    await send_slowly(portal, page, answers)
    await look_at(page, nadia)
    await page.click("#drawer summary:has-text('Corriger')")
    await page.fill(NOTES, "anniversaire")

    await page.evaluate(ANSWERED)
    answers.set()
    await page.evaluate("window.answered")

    assert await page.get_attribute("#drawer [data-detail]", "data-detail") == nadia.id
    assert await page.input_value(NOTES) == "anniversaire"
    assert (await portal.box.now_of(salma)).notes == "sans gluten"
    await page.keyboard.press("Escape")
    await page.click(f"table {chip(salma)}")
    await page.wait_for_selector("#drawer p.notes:has-text('sans gluten')")
    assert not await page.is_visible(NOTES)  # nothing waits there to be sent once more


async def test_what_is_refused_is_shown_and_what_was_typed_elsewhere_waits(portal):
    salma = await portal.box.guest(slot="19:30")
    nadia = await portal.box.guest(slot="19:30", table="T2")
    page, answers = await open_drawer(portal, salma), asyncio.Event()
    await page.fill("#drawer [name=customer_phone]", "12")
    await send_slowly(portal, page, answers)
    await look_at(page, nadia)
    await page.click("#drawer summary:has-text('Corriger')")
    await page.fill(NOTES, "anniversaire")

    answers.set()

    await page.wait_for_selector(f"#drawer [data-detail='{salma.id}'] .problem")
    assert await page.input_value("#drawer [name=customer_phone]") == "12"
    await look_at(page, nadia)
    assert await page.input_value(NOTES) == "anniversaire"
    assert portal.complaints == []
