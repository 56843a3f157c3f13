"""A form that ends in an accident is sent once, and what was typed stays."""

from appliance.actions.close_days import close_days


async def close(page):
    await page.goto("/portal/venue/closings")
    await page.fill("[name=first]", "2026-12-24")
    await page.fill("[name=reason]", "Noël")
    await page.click("text=Fermer ces jours")


async def test_an_accident_is_said_on_the_page_and_nothing_is_sent_again(portal, monkeypatch):
    page, database, sent = await portal.desk(), portal.box.environment.database, []
    write = database.write

    async def fail(action, *arguments, **keywords):
        if action is not close_days:
            return await write(action, *arguments, **keywords)
        sent.append(action)
        raise ValueError(action)

    monkeypatch.setattr(database, "write", fail)

    await close(page)

    await page.wait_for_selector("#problem .problem:has-text('Erreur interne')")
    assert await page.input_value("[name=reason]") == "Noël"
    assert sent == [close_days]


async def test_what_stands_before_the_box_and_finds_it_gone_makes_nothing_sent_twice(portal):
    page, sent = await portal.desk(), []

    async def gone(route):
        if route.request.method == "POST":
            sent.append(route.request.url)
            await route.fulfill(status=502, content_type="text/html", body="<h1>Bad Gateway</h1>")
        else:
            await route.continue_()

    await page.route("**/portal/venue/closings", gone)

    await close(page)

    await page.wait_for_selector("#problem [data-out-of-reach]")
    assert await page.input_value("[name=reason]") == "Noël"
    assert len(sent) == 1
