"""`/docs/reference` in a browser: it shows every operation and loads nothing from elsewhere."""

import pytest

from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import DESKTOP, a_guests_page
from tests.browser.phones import PHONE
from tests.browser.portal_world import DESK
from web.routes import PARTNER_ROUTE_TABLE


@browser_fixture
async def page(browser):
    return await a_guests_page(browser, DESKTOP, "en-GB")


@pytest.mark.parametrize(
    ("size", "scheme", "prefix"),
    [(DESK, "light", ""), (PHONE, "dark", "/test")],
    ids=["desktop-light-live", "phone-dark-test"],
)
async def test_every_operation_is_shown_with_no_complaint_and_no_request_elsewhere(
    running, page, size, scheme, prefix
):
    await page.set_viewport_size(size)
    await page.emulate_media(color_scheme=scheme)

    await page.goto(str(running.client.make_url(prefix + "/docs/reference")))
    await page.locator("[id$='-createReservation'] .opblock-summary-control").click()
    await page.locator("[id$='-createReservation'] textarea").wait_for()

    base = str(running.client.make_url("/"))
    for route in PARTNER_ROUTE_TABLE:
        assert await page.locator(f".opblock[id$='-{route.operation_id}']").is_visible()
    assert page.complaints == []
    assert {address for address in page.addresses if not address.startswith(base)} == set()
    assert await page.evaluate("document.documentElement.scrollWidth") == size["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_reference_is_set_in_the_type_and_the_colours_of_the_house(running, page, scheme):
    await page.set_viewport_size(PHONE)
    await page.emulate_media(color_scheme=scheme)

    await page.goto(str(running.client.make_url("/docs/reference")))
    await page.locator(".renderedMarkdown table").first.wait_for()
    looks = await page.evaluate(_LOOKS)

    assert looks["fonts"] == looks["house"]["font"]
    assert looks["inks"] == looks["house"]["ink"]
    assert looks["hidden"] == 0


# Each property must have a single value, that of the page's heading. `hidden`: how much of the
# table of errors is outside of a phone's screen.
_LOOKS = """() => {
  const told = (places, name) => [...new Set([...document.querySelectorAll(places)]
    .map((place) => getComputedStyle(place)[name]))].join(" | ");
  const table = document.querySelector(".renderedMarkdown table");
  return {
    fonts: told("#swagger-ui :is(.renderedMarkdown :is(h2, p, li, td), .opblock-tag, label)",
      "fontFamily"),
    inks: told("#swagger-ui .renderedMarkdown :is(h2, p, li, td, td code)", "color"),
    hidden: table.scrollWidth - table.clientWidth,
    house: {font: told(".docs-head h1", "fontFamily"), ink: told(".docs-head h1", "color")},
  };
}"""


@pytest.mark.parametrize("prefix", ["", "/test"], ids=["live", "test"])
async def test_a_call_tried_on_the_page_reaches_its_own_environment(running, page, prefix):
    key = running.test_key if prefix else running.live_key
    await page.goto(str(running.client.make_url(prefix + "/docs/reference")))
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


async def test_the_page_names_both_addresses_and_its_own_description(running, page):
    base = str(running.client.make_url("/")).rstrip("/")

    await page.goto(f"{base}/test/docs/reference")

    head = await page.locator(".docs-head").inner_text()
    assert base in head
    assert f"{base}/test" in head
    assert await page.locator(".docs-head a[href='/test/openapi.json']").count() == 1
