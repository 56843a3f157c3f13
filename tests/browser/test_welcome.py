"""The invitation of a person of the house, opened in a real browser."""

import pytest

from appliance.actions.create_staff import create_staff


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("locale", ["fr-FR", "ar-MA"])
async def test_a_link_is_opened_a_password_chosen_and_no_request_carries_the_secret_before(
    running, browser, scripted, locale
):
    invitation = await running.live.database.write(create_staff, "Yasmine", "owner")
    link = f"{running.client.make_url('/portal/welcome')}#{invitation.secret}"
    context = await browser.new_context(
        java_script_enabled=scripted, locale=locale, viewport={"width": 360, "height": 640}
    )
    page, complaints, addresses = await context.new_page(), [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: addresses.append((request.method, request.url)))

    await page.goto(link)
    field = page.locator("input[name=link]")
    assert await field.is_visible() is not scripted
    if scripted:
        assert await page.evaluate("document.documentElement.scrollWidth") == 360
    else:
        await field.fill(link)
    await page.locator("input[name=password]").fill("le thé est servi à minuit")
    await page.locator("button").click()

    assert "Yasmine" in await page.locator("h1").inner_text()
    onwards = await page.locator("a[href='/portal/sign-in']").bounding_box()
    assert onwards["height"] >= 44  # as tall as what a finger needs, and as wide as the card
    assert onwards["width"] > 200
    assert complaints == []
    looked_at = [url for method, url in addresses if method == "GET" and "#" not in url]
    assert not any(invitation.secret in url for url in looked_at)
    await context.close()
