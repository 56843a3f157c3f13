"""The door's room in a real browser: a phone is paired, a terminal revoked, the log read."""

import re

import pytest

from tests.browser.accessibility import violations
from tests.browser.phones import PHONE, Phone
from tests.browser.portal_world import DESK, TABLET
from tests.browser.test_portal_venue import tab_to


async def a_phone(portal, secret):
    """A second browser that follows the link of the QR code."""
    phone = await portal.box.unpaired()
    assert isinstance(phone, Phone)
    await phone.pair(secret)
    return phone


async def test_a_phone_is_paired_by_keyboard_and_the_page_notices_by_itself(portal):
    page = await portal.desk(role="manager")
    await page.goto("/portal/door")
    await tab_to(page, "form[action$=pair] input[name=name]")
    await page.keyboard.insert_text("Porte des artistes")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#pairing-state.warning")
    assert await violations(page) == []
    link = await page.inner_text("#pairing-link")
    assert re.fullmatch(r"\d{4} \d{4}", await page.inner_text("#pairing-digits"))

    phone = await a_phone(portal, link.partition("#pair=")[2])
    await page.wait_for_selector("#pairing-state.note")

    assert await violations(page) == []
    await page.goto("/portal/door")
    assert "Porte des artistes" in await page.inner_text("main")
    assert (await phone.scan("SVC-2222")) == "unknown_code"
    assert phone.complaints == []
    assert portal.complaints == []


@pytest.mark.parametrize("size", [DESK, TABLET], ids=["desk", "tablet"])
async def test_a_revoked_phone_is_refused_at_its_next_request(portal, size):
    phone = await portal.box.phone("Porte 1")
    page = await portal.desk(role="manager", viewport=size)
    await page.goto("/portal/door")

    await tab_to(page, "a[href*='/door/terminals/']")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("details.sure")
    assert await violations(page) == []
    await tab_to(page, "details.sure summary")
    await page.keyboard.press("Enter")
    await tab_to(page, "details.sure button")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".note")

    status = await phone.page.evaluate("fetch('/terminal/v1/me').then((answer) => answer.status)")
    assert status == 401
    await phone.page.wait_for_selector("#pairing:not([hidden])")
    assert "1 terminal retiré" in await page.inner_text("main")


async def test_the_log_is_filtered_and_its_proof_is_a_click_away(portal):
    text = await portal.box.pass_of(await portal.box.guest(customer_name="Salma Idrissi"))
    phone = await portal.box.phone("Porte 1")
    assert await phone.scan(text) == "checked_in"
    assert await phone.scan("https://elsewhere.example/x") == "unknown_code"
    page = await portal.desk(role="manager")

    await page.goto("/portal/door/log")
    assert await page.locator("tbody tr").count() == 2
    assert await violations(page) == []
    await page.select_option("select[name=result]", "refused")
    async with page.expect_navigation():
        await page.click(".board-tools button")
    assert await page.locator("tbody tr").count() == 1
    await page.click("a[href$='/log/check']")
    await page.wait_for_selector(".lamp.ok")
    assert await violations(page) == []
    await page.go_back()
    async with page.expect_download() as download:
        await page.click("a[href*='format=csv']")
    assert (await download.value).suggested_filename == "door-log-live-2026-11-21.csv.zip"


@pytest.mark.parametrize("language", ["fr", "ar"])
@pytest.mark.parametrize("options", [{}, {"viewport": TABLET, "color_scheme": "dark"}])
async def test_no_page_of_the_room_has_a_violation_or_is_too_wide(portal, language, options):
    await portal.box.phone("Porte 1", viewport=PHONE)
    page = await portal.desk(role="owner", language=language, **options)

    for path in ("", "/log", "/log/check", "/keys"):
        await page.goto(f"/portal/door{path}")
        assert await violations(page) == [], path
        width = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, path
    assert portal.complaints == []
