"""A form that is refused says so beside its field; what was typed stays where it is."""

from tests.browser.accessibility import violations

REFUSED = "label:has([name={}]) .refused"


async def test_a_last_day_before_the_first_is_said_there_and_nothing_typed_is_lost(portal):
    page = await portal.desk()
    await page.goto("/portal/venue/closings")
    await page.fill("[name=first]", "2026-12-24")
    await page.fill("[name=last]", "2026-12-20")
    await page.fill("[name=reason]", "Noël")

    await page.click("text=Fermer ces jours")

    said = page.locator(REFUSED.format("last"))
    await said.wait_for()
    assert await said.inner_text() == "Le dernier jour ne vient pas avant le premier."
    assert await page.input_value("[name=reason]") == "Noël"
    assert await page.evaluate("document.activeElement.name") == "last"
    assert await violations(page) == []
    await page.fill("[name=last]", "2026-12-26")
    await page.click("text=Fermer ces jours")
    await page.wait_for_selector("main > .note")
    assert await page.locator("h2:has-text('24 décembre')").count() == 1
    assert portal.complaints == []


async def test_a_slot_that_is_there_already_is_said_at_its_start(portal):
    page = await portal.desk()
    await page.goto("/portal/venue/slots")
    await page.fill("[name=name]", "Encore")
    await page.fill("[name=start]", "19:30")
    await page.fill("[name=end]", "20:30")

    await page.click("text=Ajouter le créneau")

    said = page.locator(REFUSED.format("start"))
    await said.wait_for()
    assert "commence déjà à 19:30" in await said.inner_text()
    assert await page.input_value("[name=name]") == "Encore"


async def test_what_asks_first_asks_on_its_own_page_as_before(portal):
    await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto("/portal/venue/closings")
    await page.fill("[name=first]", await page.get_attribute("[name=first]", "min"))

    await page.click("text=Fermer ces jours")

    await page.wait_for_selector("text=Salma Idrissi")
    assert await page.locator("form [name=accepted]").count() == 1


async def test_without_a_script_the_refusal_is_a_page(portal):
    page = await portal.desk(java_script_enabled=False)
    await page.goto("/portal/venue/closings")
    await page.fill("[name=first]", "2026-12-24")
    await page.fill("[name=last]", "2026-12-20")

    await page.click("text=Fermer ces jours")

    await page.wait_for_selector("p.problem:has-text('Le dernier jour ne vient pas')")
