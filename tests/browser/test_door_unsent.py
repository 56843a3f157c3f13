"""What a phone decided and the box does not take, or not yet: it is told, and nothing is lost."""

import pytest

from appliance.actions.edit_terminal import edit_terminal, terminal_mark
from appliance.actions.revoke_terminal import revoke_terminal
from tests.browser.accessibility import violations
from tests.browser.phones import eventually
from tests.browser.portal_world import DESK
from tests.browser.test_door_decided_apart import is_apart, let_in_anyway

_ONLINE = "dispatchEvent(new Event('online'))"


async def let_in_apart(door, phone):
    """Two who owe a payment are let in with a reason; the box does not hear of it."""
    guest = await door.guest(status="pending")
    text = await door.pass_of(guest)
    await phone.page.evaluate(_ONLINE)  # its list is made anew
    await phone.page.reload()
    await phone.is_ready()
    await is_apart(phone)
    assert await phone.scan(text) in {"payment_due", "unlisted"}
    await let_in_anyway(phone)
    await phone.page.click("#next")
    return guest


async def lower(door, role="search"):
    ((id_, name),) = await door.rows("SELECT id, name FROM terminal WHERE role = 'override'")
    seen = terminal_mark(name, "override")
    await door.environment.database.write(edit_terminal, id_, seen, name, role)


async def is_near(phone):
    await phone.page.unroute("**/terminal/v1/**")
    await phone.page.evaluate(_ONLINE)


@pytest.mark.parametrize(
    ("locale", "told"),
    [("fr-MA", "n’en a plus le droit"), ("en-GB", "may not do so"), ("ar-MA", "لم يعد له")],
)
async def test_who_was_let_in_before_the_role_was_taken_is_counted_and_told(door, locale, told):
    phone = await door.phone(locale=locale)
    guest = await let_in_apart(door, phone)
    await lower(door)

    await is_near(phone)
    await phone.is_synced()
    await phone.page.wait_for_selector("#conflict[open]", timeout=60_000)

    assert told in await phone.page.inner_text("#conflict-text")
    assert (await door.now_of(guest)).arrived == 2
    assert await violations(phone.page) == []
    assert phone.complaints == []


@pytest.mark.parametrize(
    ("language", "told"),
    [("fr", "n’a plus le droit"), ("en", "may not let in"), ("ar", "لم يعد لهذا الهاتف")],
)
async def test_the_portal_says_what_the_phone_lacked_and_the_reason_given(portal, language, told):
    phone = await portal.box.phone()
    await let_in_apart(portal.box, phone)
    await lower(portal.box)
    await is_near(phone)
    await phone.is_synced()
    page = await portal.desk(role="manager", language=language, viewport=DESK)

    await page.goto("/portal/door")

    text = await page.inner_text(".conflict")
    assert told in text
    assert "Connu de la maison" in text


async def test_what_the_box_does_not_take_is_told_with_its_reason_until_it_does(door):
    phone = await door.phone()
    guest = await let_in_apart(door, phone)
    refusal = {"error": "Trop de demandes.", "error_en": "Too many.", "code": "BOX_BUSY"}
    await phone.page.unroute("**/terminal/v1/**")
    await phone.page.route(
        "**/terminal/v1/sync", lambda route: route.fulfill(status=409, json=refusal)
    )

    await phone.page.evaluate(_ONLINE)
    await phone.page.wait_for_selector("body[data-box=up]")
    await phone.page.wait_for_selector("#alone-text:not([hidden])")
    note = await phone.page.inner_text("#alone-text")
    await phone.page.unroute("**/terminal/v1/sync")
    await phone.page.evaluate(_ONLINE)
    await phone.is_synced()

    assert "à envoyer" in note
    assert "Trop de demandes." in note
    await phone.page.wait_for_selector("#alone-text", state="hidden")
    assert (await door.now_of(guest)).arrived == 2


async def test_a_revoked_phone_says_how_many_the_box_never_heard_of(door):
    phone = await door.phone()
    await let_in_apart(door, phone)
    ((terminal_id,),) = await door.rows("SELECT id FROM terminal WHERE role = 'override'")
    await door.environment.database.write(revoke_terminal, terminal_id)

    await is_near(phone)

    await phone.page.wait_for_selector("#pairing:not([hidden])", timeout=60_000)
    assert "2 personnes" in await phone.page.inner_text("#pair-problem")


async def test_a_phone_that_lost_its_pairing_says_what_it_keeps_after_a_reload_too(door):
    phone = await door.phone()
    await let_in_apart(door, phone)
    await phone.context.clear_cookies()
    await is_near(phone)
    await phone.page.wait_for_selector("#pairing:not([hidden])", timeout=60_000)

    async def is_told():
        shown = await phone.page.is_visible("#pair-problem")
        return shown and "restent ici" in await phone.page.inner_text("#pair-problem")

    await eventually(is_told)
    await phone.page.reload()
    await eventually(is_told)
