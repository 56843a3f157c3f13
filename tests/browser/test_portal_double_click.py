"""A double click while the box is slow: the form is sent once, and its answer is shown."""

import asyncio

from tests.browser.test_portal_tonight import chip


async def slowly(page, pattern):
    """The box takes its time for these; how many were sent."""
    sent = []

    async def wait(route):
        if route.request.method == "POST":
            sent.append(route.request.post_data)
            await asyncio.sleep(0.5)
        await route.continue_()

    await page.route(pattern, wait)
    return sent


async def test_a_plain_form_is_sent_once(portal):
    page = await portal.desk()
    await page.goto("/portal/people")
    sent = await slowly(page, "**/portal/people")
    await page.fill("[name=name]", "Karim")

    await page.dblclick("form[action='/portal/people'] button")

    await page.wait_for_selector("#one-time-link")
    assert len(sent) == 1
    await page.fill("[name=name]", "Omar")
    await page.dblclick("form[action='/portal/people'] button")
    await page.wait_for_selector("h2:has-text('Omar')")
    assert len(sent) == 2


async def test_the_drawer_is_saved_once_and_may_be_saved_again(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto("/portal/tonight")
    await page.click(chip(salma))
    sent = await slowly(page, "**/amend")

    for notes in ("sans gluten", "près de la scène"):
        await page.click("#drawer summary:has-text('Corriger')")
        await page.fill("#drawer [name=notes]", notes)
        await page.dblclick("#drawer form[action$='/amend'] button")
        await page.wait_for_selector(f"#drawer p.notes:has-text('{notes}')")

    assert len(sent) == 2
    assert await page.locator("#drawer .problem").count() == 0
    assert portal.complaints == []


async def test_a_form_that_found_no_box_may_be_sent_again_at_once(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto("/portal/tonight")
    await page.click(chip(salma))
    await page.context.set_offline(True)
    await page.click("#drawer form[action$='/late'] button")
    await page.wait_for_selector("#drawer [data-out-of-reach]")
    await page.context.set_offline(False)

    await page.click("#drawer form[action$='/late'] button")

    await page.wait_for_selector("#drawer .chip.wait")
