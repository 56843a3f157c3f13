"""What was done is said once, and never beside a refusal."""


async def test_saved_is_not_said_again_by_what_is_refused_next_nor_by_loading_again(portal):
    page = await portal.desk()
    await page.goto("/portal/setup/tables?note=saved")
    assert await page.inner_text("main > .note") == "Enregistré."
    assert page.url.endswith("/portal/setup/tables")

    await page.fill("[name=tables]", "zut;x;y")
    await page.click("main form button")

    await page.wait_for_selector(".problem li")
    assert await page.locator("main > .note").count() == 0
    assert portal.complaints == []
