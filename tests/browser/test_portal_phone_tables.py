"""Tables that go on beside a phone's screen: the keyboard moves them too."""

from appliance.actions.offer_pairing import offer_pairing
from tests.browser.accessibility import violations

NARROW = {"viewport": {"width": 320, "height": 740}}


async def test_a_table_without_a_link_in_it_is_scrolled_by_keys(portal):
    await portal.box.guest(slot="19:30", customer_name="Salma Bennani")
    await portal.box.environment.database.write(offer_pairing, "Entrée du jardin", "scan")
    page = await portal.desk(**NARROW)
    for room in ("tonight/sheet", "door", "door/keys"):
        await page.goto(f"/portal/{room}")

        assert await violations(page) == [], room


async def test_of_a_name_in_another_script_the_beginning_is_kept(portal):
    page = await portal.desk(language="ar", **NARROW)
    await page.goto("/portal/box")

    name = page.locator(".me summary span")
    assert await name.evaluate("one => one.scrollWidth > one.clientWidth")
    assert await name.evaluate("one => getComputedStyle(one).direction") == "ltr"
