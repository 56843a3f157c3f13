"""The browser tests of `make test`: one for each kind of page."""

import pytest

from tests.app.portal.people import PASSWORD
from tests.browser.guest_look import PHONE, a_guests_page, picture
from tests.qr_codes import qr_codes

pytestmark = pytest.mark.smoke


async def test_scanning_a_valid_pass_turns_the_screen_green(door):
    guest = await door.guest()
    phone = await door.phone()

    assert await phone.scan(await door.pass_of(guest)) == "checked_in"

    assert await phone.page.get_attribute("#verdict", "data-colour") == "green"
    assert (await door.now_of(guest)).arrived == 2
    assert phone.complaints == []


async def test_offline_scans_are_queued_and_uploaded_later(door):
    guest, unpaid = await door.guest(guests=3), await door.guest(table="T2", status="pending")
    text, other = await door.pass_of(guest), await door.pass_of(unpaid)
    phone = await door.phone()
    await door.stop()

    assert await phone.scan(text) == "checked_in"
    assert await phone.page.is_visible("#verdict-offline")
    assert await phone.scan(other) == "payment_due"
    forged = f"{text[:70]}{'A' if text[70] != 'A' else 'B'}{text[71:]}"
    assert await phone.scan(forged) == "bad_signature"
    await door.start()
    await phone.is_synced()

    assert (await door.now_of(guest)).arrived == 3
    arrived = "SELECT count(*) FROM event WHERE type = 'reservation.checked_in'"
    assert await door.rows(arrived) == [(1,)]
    assert phone.complaints == []


async def test_the_pass_on_a_guests_card_can_be_scanned(door, browser):
    guest = await door.guest()
    page = await a_guests_page(browser, PHONE)

    await page.goto(f"{door.url}/access/{door.environment.keyring.access_token(guest.id, 0)}")
    image = await picture(page)

    text = await page.get_attribute("[data-pass]", "data-pass")
    assert qr_codes(image) == [text]
    assert text == await door.pass_of(guest)
    assert page.complaints == []


async def test_after_signing_in_the_reservations_of_tonight_are_shown(portal):
    guest = await portal.box.guest(slot="19:30")
    await portal.desk("host")
    await portal.set_passwords()
    [(name,)] = await portal.box.rows("SELECT name FROM staff")
    page = await portal.stranger()
    await page.goto("/portal/sign-in")
    await page.fill("[name=name]", name)
    await page.fill("[name=password]", PASSWORD)
    await page.keyboard.press("Enter")

    await page.wait_for_url("**/portal/tonight")

    await page.wait_for_selector(f"[data-reservation='{guest.id}']")
    assert portal.complaints == []
