"""Integrations on a phone: addresses are read in lines, not in syllables, and events are ticked."""

from appliance.actions.register_endpoint import register_endpoint

PHONE = {"width": 390, "height": 844}
URL = "https://pos.partner.example/hooks/venuebox/riad-atlas/7f3c9b21"


async def an_endpoint(portal):
    """Registered by a partner; its id."""
    environment = portal.box.environment
    endpoint, _ = await environment.database.write(
        register_endpoint, environment.keyring, URL, ("reservation.created",)
    )
    return endpoint.id


async def test_an_address_in_the_list_is_a_few_lines_and_the_page_no_wider_than_the_phone(portal):
    await an_endpoint(portal)
    page = await portal.desk("manager", viewport=PHONE)

    await page.goto("/portal/integrations")
    link = await page.locator("a.url").bounding_box()
    line = await page.evaluate(
        "parseFloat(getComputedStyle(document.querySelector('a.url')).lineHeight)"
    )

    assert link["height"] <= 4 * line + 1
    assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


async def test_events_are_chosen_anew_on_a_phone(portal):
    endpoint_id = await an_endpoint(portal)
    page = await portal.desk("manager", viewport=PHONE)

    await page.goto(f"/portal/integrations/endpoints/{endpoint_id}")
    await page.click("summary:has-text('En choisir d’autres')")
    await page.check("input[value='reservation.checkin_reverted']")
    await page.click("form[action$='/events'] button")

    await page.wait_for_selector("text=Le destinataire reçoit désormais ces événements.")
    told = await page.locator("p.scopes .code").all_inner_texts()
    assert told == ["reservation.created", "reservation.checkin_reverted"]
    assert portal.complaints == []
