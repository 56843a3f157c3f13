"""An invitation that is refused, on a desk and without a script: the page stays in its lines."""

from tests.browser.accessibility import violations

BOTTOMS = """() => [...document.querySelectorAll(
  "[aria-labelledby=invite] .inline-form > .field > :is(input, select), "
  + "[aria-labelledby=invite] .inline-form > .button")]
  .map((one) => Math.round(one.getBoundingClientRect().bottom))"""


async def test_a_name_that_somebody_has_is_said_below_it_and_nothing_else_moves(portal):
    page = await portal.desk()
    await page.goto("/portal/people")
    name = await page.inner_text(".people h2")
    await page.fill("[name=name]", name.upper())
    await page.select_option("[name=role]", "manager")

    await page.click("text=Créer un lien")

    said = page.locator("label:has([name=name]) .refused")
    await said.wait_for()
    assert "se connecte déjà" in await said.inner_text()
    assert await page.input_value("[name=name]") == name.upper()
    assert await page.input_value("[aria-labelledby=invite] [name=role]") == "manager"
    assert await page.evaluate("document.activeElement.name") == "name"
    bottoms = await page.evaluate(BOTTOMS)
    assert (len(bottoms), max(bottoms) - min(bottoms) <= 4) == (3, True)
    assert await violations(page) == []
    assert portal.complaints == []


async def test_without_a_script_a_step_says_it_in_place_as_well(portal):
    page = await portal.desk(java_script_enabled=False)
    await page.goto("/portal/setup/slots")
    await page.fill("[name=name]", "Encore")
    await page.fill("[name=start]", "19:30")
    await page.fill("[name=end]", "20:30")

    await page.click("form.form button")

    said = page.locator("label:has([name=start]) .refused")
    await said.wait_for()
    assert "commence déjà à 19:30" in await said.inner_text()
    assert await page.input_value("[name=name]") == "Encore"
