"""People, sessions and languages in a real browser: an owner with a keyboard, at both sizes."""

import pytest

from appliance.actions.sign_in import start_session
from tests.browser.accessibility import violations
from tests.browser.keyboard import enter_room, follow, is_within, press, reach, write
from tests.browser.portal_world import DESK, TABLET

SIZES = {"desk": DESK, "tablet": TABLET}
PASSWORD = "une menthe fraîche au matin"
KARIM = ".people li:has(h2:text-is('Karim'))"


async def choose(page, place, letters):
    """The role of that first letters."""
    await reach(page, page.locator(place))
    await page.keyboard.type(letters)


async def a_newcomer(portal, size, link):
    """Another browser in which somebody opens the link that they were given."""
    page = await portal.stranger(viewport=size)
    await page.goto(f"/portal/{link.partition('/portal/')[2]}")
    assert await violations(page) == []
    await write(page, "password", PASSWORD)
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Karim").wait_for()
    assert await violations(page) == []
    await follow(page, "Se connecter", "**/portal/sign-in")
    await write(page, "name", "Karim")
    await write(page, "password", PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/portal/tonight")
    return page


async def rooms(page):
    return await page.locator(".areas a").count()


@pytest.mark.parametrize("size", SIZES)
async def test_a_host_is_invited_made_a_manager_signed_out_and_let_in_no_more(portal, size):
    owner = await portal.desk(viewport=SIZES[size])
    await owner.goto("/portal/tonight")
    assert await owner.eval_on_selector(".areas", "bar => bar.scrollWidth <= bar.clientWidth")
    await enter_room(owner, "L’équipe", "**/portal/people")
    await write(owner, "name", "Karim")
    await choose(owner, "form[action='/portal/people'] select", "Accueil")
    await press(owner, "Créer un lien")
    link = await owner.locator("#one-time-link").inner_text()
    assert await violations(owner) == []
    assert await is_within(owner, SIZES[size]["width"])

    karim = await a_newcomer(portal, SIZES[size], link)
    assert await rooms(karim) == 2

    await owner.goto("/portal/people")
    await press(owner, "Changer le rôle", within=KARIM)
    await choose(owner, f"{KARIM} select", "Responsable")
    await press(owner, "Enregistrer", within=KARIM)
    await owner.locator(f"{KARIM} .chip:text-is('Responsable')").wait_for()
    await karim.goto("/portal/tonight")
    assert await rooms(karim) == 6

    await press(owner, "Déconnecter partout", within=KARIM)
    await karim.wait_for_url("**/portal/sign-in?next=**")  # the evening that he looked at is gone
    await owner.locator(f"{KARIM} .chip.good").wait_for(state="detached")

    await press(owner, "Ne plus laisser entrer", within=KARIM)
    assert await violations(owner) == []
    await press(owner, "Oui, ne plus laisser entrer", within=KARIM)
    await owner.locator(f"{KARIM} .chip.bad").wait_for()
    await write(karim, "name", "Karim")
    await write(karim, "password", PASSWORD)
    await karim.keyboard.press("Enter")
    await karim.locator(".problem").wait_for()
    assert await violations(karim) == []

    await follow(owner, "Journal de sécurité", "**/portal/people/log")
    assert await violations(owner) == []
    assert "A invité Karim" in await owner.inner_text("main")
    assert portal.complaints == []


@pytest.mark.parametrize("size", SIZES)
async def test_a_forgotten_browser_is_signed_out_and_the_language_changed(portal, size):
    page = await portal.desk(role="host", viewport=SIZES[size])
    [(person,)] = await portal.box.rows("SELECT id FROM staff")
    database = portal.box.environment.database
    await database.write(start_session, person, None, "Safari, iPhone")
    await page.goto("/portal/tonight")

    await reach(page, page.locator(".me summary"))
    await page.keyboard.press("Enter")
    await follow(page, "Mon compte", "**/portal/account", within=".menu")
    assert await violations(page) == []
    assert await is_within(page, SIZES[size]["width"])
    await reach(page, page.locator(".rows li:has-text('iPhone') button"))
    await page.keyboard.press("Enter")
    await page.wait_for_selector("main .note")
    assert "Safari, iPhone" not in await page.inner_text("main")
    assert await portal.box.rows("SELECT count(*) FROM session") == [(1,)]

    await press(page, "العربية")
    await page.wait_for_selector("html[dir=rtl]")
    assert await violations(page) == []
    assert await is_within(page, SIZES[size]["width"])
    assert portal.complaints == []
