"""Documentation, sandbox and start page in a browser: navigation, use and accessibility."""

import json

import pytest

from appliance.outbox import EVENT_TYPES, EXTRA_TYPES
from tests.browser.accessibility import violations
from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import DESKTOP, a_guests_page
from tests.browser.keyboard import is_within
from tests.browser.phones import PHONE
from tests.browser.portal_world import DESK
from tests.builders import TONIGHT, table_id

LOOKS = pytest.mark.parametrize(
    ("size", "scheme"), [(DESK, "light"), (PHONE, "dark")], ids=["desktop-light", "phone-dark"]
)


@browser_fixture
async def page(running, browser):
    url = str(running.client.make_url("/"))
    opened = await a_guests_page(browser, DESKTOP, "en-GB", base_url=url, reduced_motion="reduce")
    yield opened
    assert opened.complaints == []


async def look(page, size, scheme):
    await page.set_viewport_size(size)
    await page.emulate_media(color_scheme=scheme)


async def borrow(page, running):
    await page.goto("/test")
    await page.get_by_label("Your test key").fill(running.test_key)
    await page.get_by_role("button", name="Create a receiver").click()
    await page.get_by_text("not registered").or_(page.get_by_text("active, receives")).wait_for()


@LOOKS
async def test_the_start_page_leads_to_documents_guide_reference_and_sandbox(
    running, page, size, scheme
):
    await look(page, size, scheme)

    await page.goto("/?lang=en")
    await page.get_by_role("link", name="Partners").click()
    await page.locator(".library").wait_for()
    ways = [("Reference", ".opblock"), ("Guide", ".programs"), ("Documents", ".library"),
            ("Sandbox", "#key")]  # fmt: skip
    for name, mark in ways:
        await page.locator(".top").get_by_role("link", name=name).click()
        await page.locator(mark).first.wait_for()
        assert await is_within(page, size["width"])


@LOOKS
async def test_the_sandbox_page_creates_a_key_a_receiver_and_a_verified_test_event(
    running, page, size, scheme
):
    await look(page, size, scheme)
    await borrow(page, running)
    await page.get_by_text(f"receives {len(EVENT_TYPES + EXTRA_TYPES)} types").wait_for()

    await page.get_by_role("button", name="Send a test event").click()
    await page.get_by_text("✓ signature valid").click()

    assert await page.locator("#secret").inner_text() != ""
    assert await page.get_by_text("They are equal: genuine.").is_visible()
    assert "X-Service-Delivery" in await page.locator(".opened").inner_text()
    assert await violations(page) == []
    assert await is_within(page, size["width"])


async def test_the_sandbox_link_shows_deliveries_without_the_key_and_stores_no_key(running, page):
    await borrow(page, running)
    kept = await page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")

    await page.reload()
    body = {"tableId": table_id("T1"), "date": TONIGHT, "guests": 2, "idempotencyKey": "one",
            "customer": {"name": "Amina", "phone": "+212 600 000 000"}}  # fmt: skip
    await running.call("POST", "/test/v1/reservations", json=body)

    await page.get_by_text("reservation.created", exact=True).wait_for()
    assert json.loads(kept) == [{}, {}, ""]
    assert running.test_key not in page.url
    assert not await page.get_by_role("button", name="Send a test event").is_visible()
