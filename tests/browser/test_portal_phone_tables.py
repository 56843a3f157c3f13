"""Tables that go on beside a phone's screen: the keyboard moves them too."""

from appliance.actions.offer_pairing import offer_pairing
from tests.browser.accessibility import violations
from tests.browser.keyboard import is_within

NARROW = {"viewport": {"width": 320, "height": 740}}


async def test_a_table_without_a_link_in_it_is_scrolled_by_keys(portal):
    await portal.box.guest(slot="19:30", customer_name="Salma Bennani")
    await portal.box.environment.database.write(offer_pairing, "Entrée du jardin", "scan")
    page = await portal.desk(**NARROW)
    for room in ("tonight/sheet", "door", "door/keys"):
        await page.goto(f"/portal/{room}")

        assert await violations(page) == [], room
        assert await is_within(page, 320), room


async def test_of_a_name_in_another_script_the_beginning_is_kept(portal):
    page = await portal.desk(language="ar", **NARROW)
    await page.goto("/portal/box")

    name = page.locator(".me summary span")
    assert await name.evaluate("one => one.scrollWidth > one.clientWidth")
    assert await name.evaluate("one => getComputedStyle(one).direction") == "ltr"


async def test_what_only_serves_without_a_script_is_not_seen_before_it_runs(portal):
    await portal.box.guest(slot="19:30")
    with_script = await portal.desk()
    await with_script.route("**/house*.js*", lambda route: route.abort())
    without = await portal.desk(java_script_enabled=False)
    for page, is_seen in ((with_script, False), (without, True)):
        await page.goto("/portal/tonight")

        assert await page.locator("[data-without-script]").is_visible() == is_seen
