"""An evening that is full of people with long names."""

from tests.browser.test_portal_tonight import chip

LONG = "Marie-Antoinette de La Rochefoucauld-Montmorency d’Orléans"


async def test_long_names_leave_every_slot_on_the_screen(portal):
    guests = [
        await portal.box.guest(slot="19:30", table=number, customer_name=f"{LONG} {number}")
        for number in ("T1", "T2", "T3")
    ]
    page = await portal.desk()
    await page.goto("/portal/tonight")
    await page.wait_for_selector(f"table {chip(guests[0])}")

    frame = page.locator(".board-frame")

    assert await frame.evaluate("one => one.scrollWidth <= one.clientWidth")
    party = await page.locator(f"table {chip(guests[0])} .party").bounding_box()
    assert party["x"] + party["width"] <= 1280


async def test_the_drawer_opens_at_its_head(portal):
    salma = await portal.box.guest(slot="19:30", notes="Près de la fenêtre, " * 20)
    page = await portal.desk(viewport={"width": 1280, "height": 420})
    await page.goto("/portal/tonight")

    await page.click(f"table {chip(salma)}")
    await page.wait_for_selector("#drawer [data-detail]")

    assert await page.evaluate("document.activeElement.matches('#drawer [data-detail]')")
    assert await page.evaluate("document.querySelector('#drawer').scrollTop") == 0


async def test_a_name_can_be_told_on_a_phone(portal):
    salma = await portal.box.guest(slot="19:30", customer_name="Salma Bennani")
    page = await portal.desk(viewport={"width": 390, "height": 844}, has_touch=True)
    await page.goto("/portal/tonight")

    who = page.locator(f"table {chip(salma)} .who")

    assert (await who.bounding_box())["width"] >= 80


async def test_the_ring_of_the_keyboard_stands_within_the_bar_of_rooms(portal):
    page = await portal.desk()
    await page.goto("/portal/tonight")
    for _ in range(3):
        await page.keyboard.press("Tab")

    offset = "getComputedStyle(document.activeElement).outlineOffset"

    assert await page.evaluate("document.activeElement.matches('.areas a')")
    assert int((await page.evaluate(offset)).removesuffix("px")) < 0
