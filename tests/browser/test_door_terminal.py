"""A phone is a terminal: paired by a link, of a role, and forgotten when it is revoked."""

import pytest

from appliance.actions.offer_pairing import offer_pairing
from appliance.actions.revoke_terminal import revoke_terminal
from tests.browser.phones import eventually

LEFT = """async () => ({
  databases: (await indexedDB.databases()).filter((one) => one.name.startsWith("venuebox")).length,
  caches: (await caches.keys()).length,
})"""


async def test_a_pairing_link_is_used_up_and_leaves_its_secret_nowhere(door):
    secret, _ = await door.environment.database.write(offer_pairing, "Porte 1", "override")
    phone = await door.unpaired()
    asked = []
    phone.page.on("request", lambda request: asked.append(request.url))

    await phone.pair(secret)

    assert secret not in phone.page.url
    assert not any(secret in url for url in asked)
    assert await phone.page.evaluate("document.cookie") == ""
    assert await phone.page.inner_text("#venue") == "Riad Atlas"
    assert phone.complaints == []


async def test_a_wrong_code_says_what_to_do(door):
    phone = await door.unpaired()
    await phone.open()

    await phone.page.fill("#pair-code", "12345678")
    await phone.page.click("#pair-form button[type=submit]")

    await phone.page.wait_for_selector("#pair-problem:not([hidden])")
    assert "inconnu" in await phone.page.inner_text("#pair-problem")


@pytest.mark.proves("S33")
async def test_a_revoked_phone_forgets_everything_and_asks_to_be_paired(door):
    await door.guest(customer_name="Salma Idrissi")
    phone = await door.phone()
    ((terminal_id,),) = await door.rows("SELECT id FROM terminal")
    await phone.page.click("#open-list")
    await phone.page.wait_for_selector(".guest >> text=Salma")

    await door.environment.database.write(revoke_terminal, terminal_id)

    await phone.page.wait_for_selector("#pairing:not([hidden])", timeout=60_000)
    assert "Salma" not in await phone.page.content()
    await eventually(lambda: is_clean(phone))


async def is_clean(phone):
    return await phone.page.evaluate(LEFT) == {"databases": 0, "caches": 0}


@pytest.mark.proves("S33")
async def test_the_next_scan_of_a_phone_revoked_behind_its_back_wipes_it_too(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    await phone.page.evaluate("window.EventSource = undefined")
    await door.environment.database.write(
        lambda tx: tx.execute("UPDATE terminal SET revoked_at = :now", {"now": tx.now})
    )

    await phone.wedge(text)

    await phone.page.wait_for_selector("#pairing:not([hidden])", timeout=60_000)
    await eventually(lambda: is_clean(phone))


async def test_unpairing_asks_once_and_tells_the_box(door):
    phone = await door.phone()

    await phone.page.click("#open-menu")
    await phone.page.click("#unpair")
    await phone.page.click("#unpair-yes")

    await phone.page.wait_for_selector("#pairing:not([hidden])")
    await eventually(lambda: is_clean(phone))
    assert await door.rows("SELECT count(*) FROM terminal WHERE revoked_at IS NULL") == [(0,)]


async def test_a_phone_that_may_only_scan_shows_no_list_and_no_way_around_a_verdict(door):
    guest = await door.guest(status="pending")
    phone = await door.phone(role="scan")

    assert await phone.scan(await door.pass_of(guest)) == "payment_due"
    assert not await phone.page.is_visible("#override")
    await phone.page.click("#next")
    await phone.page.click("#open-list")

    assert await phone.page.locator(".guest").count() == 0
    assert "saisissez" in (await phone.page.inner_text("#guests-empty")).lower()


@pytest.mark.parametrize("reach", ["online", "apart"])
async def test_staff_let_in_with_a_reason_whom_the_box_would_not(door, reach):
    guest = await door.guest(status="pending")
    text = await door.pass_of(guest)
    phone = await door.phone()
    if reach == "apart":
        await door.stop()

    assert await phone.scan(text) == "payment_due"
    await phone.page.click("#override")
    await phone.page.click("[data-reason='reason.paid']")
    await phone.until("() => document.getElementById('verdict').dataset.result === 'checked_in'")
    if reach == "apart":
        await door.start()
        await phone.is_synced()

    assert (await door.now_of(guest)).arrived == 2
    assert (await door.now_of(guest)).status == "pending"


async def test_fewer_people_than_booked_are_counted_by_the_stepper(door):
    guest = await door.guest(guests=5)
    phone = await door.phone()

    assert await phone.scan(await door.pass_of(guest)) == "checked_in"
    await phone.page.click("#verdict-stepper [data-step='-1']")
    await phone.page.click("#verdict-stepper [data-step='-1']")
    await phone.until("() => document.querySelector('.party b')?.textContent === '3'")

    assert (await door.now_of(guest)).arrived == 3


async def test_a_check_in_is_taken_back_within_ten_seconds(door):
    guest = await door.guest()
    phone = await door.phone()

    assert await phone.scan(await door.pass_of(guest)) == "checked_in"
    await phone.page.click("#undo")
    await phone.until("() => document.getElementById('verdict').dataset.result === 'undone'")

    assert (await door.now_of(guest)).arrived == 0


async def test_a_guest_is_found_by_family_name_and_let_in_by_hand_and_another_door_sees_it(door):
    guest = await door.guest(guests=4, customer_name="Salma Bennani", notes="VIP")
    await door.guest(table="T2", customer_name="Karim Tazi")
    phone, other = await door.phone(), await door.phone("Porte 2")
    assert await other.page.inner_text("#arrived") == "0"

    await phone.page.click("#open-list")
    await phone.page.fill("#query", "bennani")
    await phone.until("() => document.querySelectorAll('.guest').length === 1")
    await phone.page.click(".guest")
    await phone.page.click("#guest-go")

    assert await phone.result() == "checked_in"
    assert await phone.page.is_visible("#verdict-vip")
    await other.until("() => document.getElementById('arrived').textContent === '4'")
    assert (await door.now_of(guest)).arrived == 4
