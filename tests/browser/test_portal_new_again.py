"""The form for a new reservation after Back: it is a new form, or the one that was left."""

import re

from tests.browser.chromium import browser_fixture
from tests.browser.portal_world import PortalWorld

NEW = "/portal/reservations/new?date=2026-11-28&slot=19:30"
KEPT = "addEventListener('pageshow', (e) => { was = e.persisted })"


@browser_fixture
async def desk(portal: PortalWorld, chromium):
    """A page of a browser that keeps pages for Back, as people's own do."""
    portal._browser = await chromium.launch(ignore_default_args=["--disable-back-forward-cache"])
    page = await portal.desk(language="en")
    await page.add_init_script(KEPT)
    yield page
    await portal._browser.close()


async def back(page):
    await page.evaluate("setTimeout(() => history.back(), 10)")
    await page.wait_for_url(re.compile("/reservations/new"), wait_until="commit")


async def test_the_second_guest_gets_a_table_of_their_own_after_back(portal, desk):
    for name, table in (("First Guest", 1), ("Second Guest", 2)):
        if name == "Second Guest":
            await back(desk)
            await desk.wait_for_function(
                "!was && document.querySelector('[name=customer_name]')?.value === ''"
            )
        else:
            await desk.goto(NEW)
        await desk.select_option("#new-table", index=table)
        await desk.fill("[name=customer_name]", name)
        await desk.click("text=Hold the table")
        await desk.wait_for_selector(f"main h1:has-text('{name}')")

    assert await portal.box.rows("SELECT customer_name FROM reservation ORDER BY seq") == [
        ("First Guest",), ("Second Guest",)
    ]  # fmt: skip


async def test_a_form_that_was_not_sent_is_found_as_it_was_left(desk):
    await desk.goto(NEW)
    await desk.fill("[name=customer_name]", "First Guest")

    await desk.click("text=To this evening")
    await desk.wait_for_selector("table")
    await back(desk)

    assert await desk.evaluate("was")
    assert await desk.input_value("[name=customer_name]") == "First Guest"
