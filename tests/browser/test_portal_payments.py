"""A payment typed wrong, voided and recorded again beside the board."""

import pytest

from tests.browser.accessibility import violations
from tests.browser.keyboard import is_within
from tests.browser.portal_world import DESK

PHONE = {"width": 390, "height": 844}
PAY, VOID = "form[action$='/payment']", "form[action$='/void']"


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("language", ["fr", "ar"])
async def test_an_unusual_amount_is_confirmed_voided_and_recorded_right(portal, language, size):
    salma = await portal.box.guest(slot="19:30", status="pending", access_code="SVC-2345")
    page = await portal.desk("host", language, viewport=size)
    await page.goto("/portal/tonight")
    await page.click(f"table [data-reservation='{salma.id}']")

    await page.fill(f"{PAY} [name=amount]", "99999999")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(f"{PAY} [name=sure]")
    assert await violations(page) == []
    await page.check(f"{PAY} [name=sure]")
    await page.click(f"{PAY} button")
    await page.wait_for_selector(VOID, state="attached")
    assert (await portal.box.now_of(salma)).status == "confirmed"

    await page.click(f"details:has({VOID}) summary")
    await page.fill(f"{VOID} [name=reason]", "faute de frappe")
    assert await violations(page) == []
    assert await is_within(page, size["width"])
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#drawer s")

    assert (await portal.box.now_of(salma)).status == "pending"
    await page.fill(f"{PAY} [name=amount]", "500")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(VOID, state="attached")
    assert (await portal.box.now_of(salma)).status == "confirmed"
    paid = await portal.box.rows("SELECT amount, voided_at IS NULL FROM payment ORDER BY amount")
    assert paid == [(500, 1), (99999999, 0)]
    assert portal.complaints == []
