"""The outbox of the test environment on a phone: an address is read in one line."""

from tests.browser.accessibility import violations
from tests.browser.door_world import PHONE
from tests.browser.keyboard import is_within
from tests.builders import a_body

HEIGHTS = "all => all.map(one => one.getBoundingClientRect().height)"


async def test_each_letter_is_one_line_that_a_finger_can_press(running, browser):
    customer = {"name": "Salma", "email": "salma@a-long-domain-name-of-a-guest.example"}
    await running.call("POST", "/test/v1/reservations", json=a_body(customer=customer))
    page = await browser.new_page(viewport=PHONE, has_touch=True, is_mobile=True)

    await page.goto(str(running.client.make_url("/test/outbox")))

    [height] = await page.locator("tbody tr").evaluate_all(HEIGHTS)
    [link] = await page.locator("tbody a").evaluate_all(HEIGHTS)
    assert height < 2 * link
    assert link >= 43.5
    assert await is_within(page, PHONE["width"])
    assert await violations(page) == []
