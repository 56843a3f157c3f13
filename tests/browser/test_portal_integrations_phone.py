"""Integrations on a phone: addresses are read in lines, not in syllables, and events are ticked."""

from appliance.actions.announce import announce
from appliance.actions.register_endpoint import register_endpoint
from tests.browser.test_portal_phone import PHONE as IN_A_HAND
from tests.browser.test_portal_phone import SMALL

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


async def test_what_a_finger_presses_is_high_enough(portal):
    room = "/portal/integrations"
    endpoint_id = await an_endpoint(portal)
    guest = await portal.box.guest(slot="19:30")
    await portal.box.environment.database.write(announce, "reservation.created", guest.id)
    [(delivery_id,)] = await portal.box.rows("SELECT id FROM delivery")
    page = await portal.desk("manager", **IN_A_HAND)

    for path in (room, f"{room}/endpoints/{endpoint_id}", f"{room}/deliveries",
                 f"{room}/deliveries/{delivery_id}", f"{room}/replay",
                 f"/portal/reservations/{guest.id}"):  # fmt: skip
        await page.goto(path)

        assert await page.evaluate(SMALL) == [], path


async def test_what_a_replay_is_asked_for_fills_the_width_of_a_phone(portal):
    await an_endpoint(portal)
    page = await portal.desk("manager", **IN_A_HAND)

    await page.goto("/portal/integrations/replay")
    form = await page.locator("form.filter").bounding_box()
    for field in await page.locator("input[type=datetime-local]").all():
        box = await field.bounding_box()
        assert (box["x"], box["width"]) == (form["x"], form["width"])


async def test_what_an_endpoint_is_trusted_by_is_typed_where_it_was_chosen(portal):
    endpoint_id = await an_endpoint(portal)
    page = await portal.desk("manager", viewport=PHONE)

    await page.goto(f"/portal/integrations/endpoints/{endpoint_id}")
    await page.click("summary:has-text('Faire confiance à autre chose')")
    seen = {}
    for which in ("system", "ca", "pin"):
        await page.check(f"[name=which][value={which}]")
        seen[which] = [
            name for name in ("ca", "pin") if await page.locator(f"[name={name}]").is_visible()
        ]

    assert seen == {"system": [], "ca": ["ca"], "pin": ["pin"]}
