"""What somebody types in the drawer stays theirs, whatever else happens to the reservation."""

from tests.browser.accessibility import violations
from tests.browser.test_portal_tonight import chip

NOTES = "#drawer [name=notes]"


async def open_drawer(portal, salma, **options):
    page = await portal.desk(**options)
    await page.goto("/portal/tonight")
    await page.click(f"table {chip(salma)}")
    await page.click("#drawer summary:has-text('Corriger')")
    return page


async def test_another_button_of_the_drawer_carries_over_what_is_typed(portal):
    salma = await portal.box.guest(slot="19:30", notes="Près de la fenêtre")
    page = await open_drawer(portal, salma)
    await page.fill(NOTES, "sans gluten")
    await page.check("#drawer [name=vip]")

    await page.click("#drawer form[action$='/late'] button")

    await page.wait_for_selector("#drawer .chip.wait")
    assert await page.input_value(NOTES) == "sans gluten"
    assert await page.is_checked("#drawer [name=vip]")
    assert await page.is_visible(NOTES)
    assert await page.locator("#drawer .hint:has-text('Actuellement')").count() == 0
    assert await violations(page) == []
    await page.click("#drawer form[action$='/amend'] button")
    await page.wait_for_selector("#drawer p.notes:has-text('sans gluten')")
    now = await portal.box.now_of(salma)
    assert (now.notes, bool(now.vip), now.late_at is not None) == ("sans gluten", True, True)
    assert portal.complaints == []


async def test_what_others_wrote_meanwhile_stands_beside_what_is_carried_over(portal):
    salma = await portal.box.guest(slot="19:30", notes="Près de la fenêtre")
    page = await open_drawer(portal, salma)
    await page.fill(NOTES, "sans gluten")
    await portal.box.environment.database.write(
        lambda tx: tx.execute("UPDATE reservation SET notes = 'autre', version = version + 1")
    )

    await page.click("#drawer form[action$='/late'] button")  # refused: it has changed

    await page.wait_for_selector("#drawer .problem")
    assert await page.input_value(NOTES) == "sans gluten"
    assert (
        await page.inner_text("#drawer form[action$='/amend'] .hint")
        == "Actuellement\N{NO-BREAK SPACE}: autre"
    )


async def test_what_was_refused_is_carried_over_too(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await open_drawer(portal, salma)
    await page.fill("#drawer [name=customer_phone]", "12")
    await page.click("#drawer form[action$='/amend'] button")
    await page.wait_for_selector("#drawer .problem")

    await page.click("#drawer form[action$='/late'] button")

    await page.wait_for_selector("#drawer .chip.wait")
    assert await page.input_value("#drawer [name=customer_phone]") == "12"


async def test_an_evening_that_is_read_again_waits_for_who_types(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk()
    resets = []

    async def reset(route):
        resets.append(route)
        body = "event: reset\ndata: {}\n\n" if len(resets) == 2 else ": \n\n"
        await route.fulfill(content_type="text/event-stream", body="retry: 300\n\n" + body)

    await page.goto("/portal/tonight")
    await page.route("**/portal/tonight/events?**", reset)
    await page.click(f"table {chip(salma)}")
    await page.click("#drawer summary:has-text('Corriger')")
    await page.fill(NOTES, "sans gluten")
    await page.evaluate("window.same = true")

    await portal.box.stop()  # the feed ends, and is asked for again
    await portal.box.start()
    await page.wait_for_selector("[data-reads-again]:not([hidden])")

    assert await page.input_value(NOTES) == "sans gluten"
    assert await page.evaluate("window.same") is True
    await page.click("#drawer form[action$='/amend'] button")
    await page.wait_for_selector("[data-reads-again][hidden]", state="attached")
    assert await page.evaluate("window.same") is None
    assert (await portal.box.now_of(salma)).notes == "sans gluten"


async def test_a_look_at_another_reservation_and_a_closed_drawer_keep_what_is_typed(portal):
    salma = await portal.box.guest(slot="19:30", notes="Près de la fenêtre")
    nadia = await portal.box.guest(slot="19:30", table="T2")
    page = await open_drawer(portal, salma)
    await page.fill(NOTES, "sans gluten")

    await page.evaluate(
        "id => document.querySelector(`[data-reservation='${id}']`).click()", nadia.id
    )
    await page.wait_for_selector(f"#drawer [data-detail='{nadia.id}']")
    assert await page.input_value(NOTES) == "Près de la fenêtre"
    await page.keyboard.press("Escape")
    await page.click(f"table {chip(salma)}")
    await page.wait_for_selector(f"#drawer [data-detail='{salma.id}']")

    assert await page.input_value(NOTES) == "sans gluten"
    assert await page.is_visible(NOTES)
    await page.keyboard.press("Escape")
    await page.click(f"table {chip(salma)}")
    await page.wait_for_selector(f"#drawer [data-detail='{salma.id}']")
    assert await page.input_value(NOTES) == "sans gluten"
    await page.click("#drawer form[action$='/amend'] button")
    await page.wait_for_selector("#drawer p.notes:has-text('sans gluten')")
    assert (await portal.box.now_of(salma)).notes == "sans gluten"
    assert portal.complaints == []
