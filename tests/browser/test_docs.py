"""`/docs/reference` in a browser: it shows every operation and loads nothing from elsewhere."""

from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import DESKTOP, a_guests_page


@browser_fixture
async def page(browser):
    return await a_guests_page(browser, DESKTOP, "en-GB")


async def test_a_call_from_the_reference_page_reaches_its_own_environment(running, page):
    key = running.test_key
    await page.goto(str(running.client.make_url("/test/docs/reference")))
    await page.locator("button.authorize").click()
    await page.locator("input[aria-label='auth-bearer-value']").fill(key)
    await page.locator(".auth-btn-wrapper .authorize").click()
    await page.locator(".btn-done").click()

    answered = {}
    for operation in ("getVenue", "getAvailability", "createReservation"):
        place = page.locator(f"[id$='-{operation}']")
        await place.locator(".opblock-summary-control").click()
        await place.locator(".execute").click()  # with the prefilled values
        answered[operation] = await place.locator(".live-responses-table").inner_text()

    assert "Riad Atlas" in answered["getVenue"]
    assert '"available": true' in answered["getAvailability"]
    assert '"status": "confirmed"' in answered["createReservation"]
    assert page.complaints == []
