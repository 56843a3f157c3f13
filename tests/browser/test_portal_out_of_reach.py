"""What is pressed while the box is out of reach says so; once it answers, all goes on."""

from tests.browser.test_portal_tonight import chip, scan

SAID = "La box ne répond pas. Vérifiez le Wi-Fi et réessayez\N{NO-BREAK SPACE}: rien n’est perdu."
OUT = "[data-out-of-reach]"


async def test_a_chip_that_cannot_be_opened_says_so_and_opens_later(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto("/portal/tonight")
    await page.context.set_offline(True)

    await page.click(chip(salma))

    await page.wait_for_selector(f"#problem {OUT}")
    assert await page.inner_text("#problem") == SAID
    await page.context.set_offline(False)
    await page.click(chip(salma))
    await page.wait_for_selector("#drawer [data-detail]")
    assert await page.locator(OUT).count() == 0


async def test_a_button_of_the_drawer_says_it_there_and_what_was_typed_stays(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto("/portal/tonight")
    await page.click(chip(salma))
    await page.click("#drawer summary:has-text('Corriger')")
    await page.fill("#drawer [name=notes]", "sans gluten")
    await page.context.set_offline(True)

    await page.click("#drawer form[action$='/amend'] button")

    await page.wait_for_selector(f"#drawer {OUT}")
    assert await page.inner_text(f"#drawer {OUT}") == SAID
    assert await page.input_value("#drawer [name=notes]") == "sans gluten"
    await page.context.set_offline(False)
    await page.click("#drawer form[action$='/amend'] button")
    await page.wait_for_selector("#drawer p.notes:has-text('sans gluten')")
    assert await page.locator(OUT).count() == 0


async def test_a_row_that_could_not_be_read_is_asked_for_again(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto("/portal/tonight")
    await page.wait_for_selector(chip(salma))
    asked = []

    async def refuse_once(route):
        asked.append(route)
        await (route.abort() if len(asked) == 1 else route.continue_())

    await page.route("**/portal/tonight/rows?**", refuse_once)

    await scan(portal, salma)

    await page.wait_for_selector(f"{chip(salma)}.in")
    assert len(asked) == 2
