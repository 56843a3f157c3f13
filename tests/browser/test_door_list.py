"""The door app's guest list: search, counts, undo. Each tap has one effect."""

import asyncio

import aiohttp

from appliance.door.terminals import issue_terminal
from tests.browser.accessibility import violations
from tests.waiting import until

TABLES = "[...document.querySelectorAll('#guests .guest-table')].map((one) => one.textContent)"
FOCUSED = "document.activeElement.querySelector('.guest-table')?.textContent"
UNDOS = "SELECT kind, reason, admitted FROM scan_log WHERE kind = 'undo'"
# Tap the same point twice, even if its content changes in between. The second tap has a finger's
# time stamp, even if a busy machine delays it.
TAP = """([[x, y], at]) => {
  const there = document.elementFromPoint(x, y);
  const tap = new MouseEvent("click",
    { bubbles: true, cancelable: true, detail: 1, clientX: x, clientY: y });
  if (at) Object.defineProperty(tap, "timeStamp", { value: at });
  there.dispatchEvent(tap);
  return tap.timeStamp;
}"""
APART = 0.2  # in seconds


async def comes_in_elsewhere(door, guest, arrivals=1):
    """Check in part of the party at another terminal."""
    _, token = await door.environment.database.write(issue_terminal, "Porte 2")
    headers = {"Authorization": f"Bearer {token}"}
    body = {"scanId": f"elsewhere-{guest.id}", "reservationId": guest.id, "arrivals": arrivals}
    async with (
        aiohttp.ClientSession(headers=headers) as client,
        client.post(f"{door.url}/terminal/v1/check-ins", json=body) as response,
    ):
        assert (await response.json())["result"] == "checked_in"


async def shows(phone, table, party):
    """Wait until the list shows the party's count."""
    await phone.until(
        """([table, party]) => [...document.querySelectorAll("#guests .guest")]
          .some((row) => row.textContent.includes(table) && row.textContent.includes(party))""",
        [table, party],
    )


async def test_keyboard_focus_and_finger_stay_on_their_row_while_others_arrive(door):
    guests = [await door.guest(table=f"T{n}", guests=4) for n in (1, 2, 3)]
    tables = ["Terrasse 1", "Terrasse 2", "Terrasse 3"]
    phone = await door.phone()
    page = phone.page
    await page.click("#open-list")
    await page.focus("#guests li:nth-child(2) button")
    box = await page.locator("#guests li:nth-child(2) .guest-table").bounding_box()
    assert await page.evaluate(TABLES) == tables

    await page.mouse.move(box["x"] + 5, box["y"] + 5)
    await page.mouse.down()
    await comes_in_elsewhere(door, guests[1])
    await shows(phone, "Terrasse 2", "1 / 4")
    assert await page.evaluate(FOCUSED) == "Terrasse 2"
    await page.mouse.up()

    await page.wait_for_selector("#guest-sheet[open]")
    assert "Terrasse 2" in await page.inner_text("#guest-name")


async def test_a_guest_found_by_family_name_and_checked_in_appears_at_another_door(door):
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


async def take_back(phone):
    """Undo the check-in from the list."""
    await phone.page.click("#open-list")
    await phone.page.click("#guests button")
    await phone.page.click("#guest-undo")
    assert await violations(phone.page) == []
    await phone.page.click("#guest-reasons [data-reason='take_back.left']")
    await until(lambda: is_undone(phone))


async def is_undone(phone):
    return await phone.page.get_attribute("#verdict", "data-result") == "undone"


async def test_hours_later_a_check_in_of_another_door_can_be_undone_with_a_reason(door):
    guest = await door.guest(guests=2)
    phone = await door.phone()
    await comes_in_elsewhere(door, guest, 2)
    door.clock.advance(7200)
    await phone.until("() => document.getElementById('arrived').textContent === '2'")

    await take_back(phone)

    assert await door.rows(UNDOS) == [("undo", "Repartis", -2)]
    assert await door.are_in(guest, 0)
    await phone.page.click("#next")
    await phone.page.click("#guests button")
    assert await phone.page.is_hidden("#guest-undo")
    assert phone.complaints == []


async def test_an_offline_undo_is_in_the_scan_log_with_its_reason(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    phone = await door.phone()
    await door.stop()
    await phone.is_down()
    assert await phone.scan(text) == "checked_in"
    await phone.page.click("#next")

    await take_back(phone)
    await door.start()

    await phone.is_synced()
    assert await door.rows("SELECT kind, result, admitted, reason FROM scan_log") == [
        ("pass", "undone", 0, "Repartis")
    ]
    assert await door.are_in(guest, 0)


async def test_a_check_in_at_another_door_shows_where_and_cannot_be_undone_offline(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    phone = await door.phone()
    await comes_in_elsewhere(door, guest, 2)
    await phone.until("() => document.getElementById('arrived').textContent === '2'")
    await door.stop()
    await phone.is_down()

    assert await phone.scan(text) == "already_checked_in"
    assert "Porte 2" in await phone.page.inner_text("#verdict-sentence")
    await phone.page.click("#next")
    await phone.page.click("#open-list")
    await phone.page.click("#guests button")
    await phone.page.click("#guest-undo")
    await phone.page.fill("#guest-reason", "Erreur")
    await phone.page.keyboard.press("Enter")

    assert await phone.result() == "refused"


async def over_a_slow_network(phone, seconds):
    """Delay each answer."""

    async def hold(route):
        await asyncio.sleep(seconds)
        await route.continue_()

    await phone.page.route("**/terminal/v1/scans", hold)
    await phone.page.route("**/terminal/v1/check-ins", hold)


async def tap_twice(phone, selector):
    """Double-tap the middle of the element, 0.2 s apart."""
    box = await phone.page.locator(selector).bounding_box()
    spot = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    first = await phone.page.evaluate(TAP, [spot, None])
    await asyncio.sleep(APART)
    await phone.page.evaluate(TAP, [spot, first + 1000 * APART])


async def test_double_tapping_a_reason_admits_the_party_once(door):
    guest = await door.guest(guests=2, status="pending")
    phone = await door.phone()
    assert await phone.scan(await door.pass_of(guest)) == "payment_due"
    await over_a_slow_network(phone, 0.5)

    await phone.page.click("#override")
    await tap_twice(phone, "[data-reason='reason.paid']")

    await phone.until("() => document.getElementById('verdict').dataset.result === 'checked_in'")
    await asyncio.sleep(1)
    assert await phone.result() == "checked_in"
    assert (await door.now_of(guest)).arrived == 2
    assert await door.rows("SELECT count(*) FROM scan_log WHERE admitted > 0") == [(1,)]


async def test_scanning_into_the_search_field_keeps_the_list_unfiltered(door):
    await door.guest()
    phone = await door.phone()
    await phone.page.click("#open-list")
    await phone.page.focus("#query")

    assert await phone.scan("https://elsewhere.example/x") == "unknown_code"
    await phone.page.click("#next")

    assert await phone.page.input_value("#query") == ""
    assert await phone.page.locator("#guests li").count() == 1


async def test_the_number_of_arrivals_is_chosen_from_a_list_that_scanners_cannot_change(door):
    guest, following = await door.guest(guests=8), await door.guest(table="T2")
    phone = await door.phone()
    count = phone.page.locator("#verdict-stepper select")
    await phone.scan(await door.pass_of(guest))

    await count.select_option("3")
    await until(lambda: door.are_in(guest, 3))
    await phone.page.wait_for_selector("#verdict-facts:has-text('3 / 8')")
    await count.focus()

    assert await phone.scan(await door.pass_of(following)) == "checked_in"
    await phone.page.wait_for_selector("#verdict-facts:has-text('2 / 2')")
    await asyncio.sleep(1)  # longer than the delay of a count
    assert await door.are_in(guest, 3)
