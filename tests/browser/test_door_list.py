"""The guest list in the hand: it changes while it is read, and nothing slips from the finger."""

import aiohttp
import pytest

from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.offer_pairing import offer_pairing
from tests.browser.phones import eventually

TABLES = "[...document.querySelectorAll('#guests .guest-table')].map((one) => one.textContent)"
FOCUSED = "document.activeElement.querySelector('.guest-table')?.textContent"


async def comes_in_elsewhere(door, guest, arrivals=1):
    """Some of the party are let in by another terminal."""
    _, token = await door.environment.database.write(issue_terminal, "Porte 2")
    headers = {"Authorization": f"Bearer {token}"}
    body = {"scanId": f"elsewhere-{guest.id}", "reservationId": guest.id, "arrivals": arrivals}
    async with (
        aiohttp.ClientSession(headers=headers) as client,
        client.post(f"{door.url}/terminal/v1/check-ins", json=body) as response,
    ):
        assert (await response.json())["result"] == "checked_in"


async def shows(phone, table, party):
    """The list tells of the party."""
    await phone.until(
        """([table, party]) => [...document.querySelectorAll("#guests .guest")]
          .some((row) => row.textContent.includes(table) && row.textContent.includes(party))""",
        [table, party],
    )


async def test_keyboard_and_finger_stay_on_their_row_while_others_come_in(door):
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


async def test_a_row_that_leaves_hands_the_focus_to_the_next(door):
    guests = [await door.guest(table=f"T{n}", guests=2) for n in (1, 2, 3)]
    phone = await door.phone()
    await phone.page.click("#open-list")
    await phone.page.click("[data-filter=expected]")
    await phone.page.focus("#guests li:nth-child(2) button")

    await comes_in_elsewhere(door, guests[1], 2)

    await phone.until("() => document.querySelectorAll('#guests li').length === 2")
    assert await phone.page.evaluate(FOCUSED) == "Terrasse 3"


async def test_the_list_goes_as_the_evening_goes(door):
    for table, slot in (("T1", "00:30"), ("T2", "21:00"), ("T3", "05:30"), ("T4", "20:00")):
        await door.guest(table=table, slot=slot)
    await door.guest(table="T5", slot=None)
    phone = await door.phone()

    await phone.page.click("#open-list")

    await phone.until("() => document.querySelectorAll('.guest-slot').length === 5")
    slots = "[...document.querySelectorAll('.guest-slot')].map((one) => one.textContent)"
    assert await phone.page.evaluate(slots) == ["", "20:00", "21:00", "00:30", "05:30"]


async def test_who_was_let_in_without_a_table_counts_among_the_arrived_alone(door):
    await door.guest(guests=2, table="T2")
    freed = await door.guest(guests=4, status="cancelled")
    phone = await door.phone()
    await phone.scan(await door.pass_of(freed))

    await phone.page.click("#override")
    await phone.page.click("[data-reason='reason.known']")

    await phone.until("() => document.getElementById('arrived').textContent === '4'")
    assert await phone.page.inner_text("#expected") == "2"


@pytest.mark.parametrize("locale", ["fr-MA", "ar-MA"])
async def test_unpairing_says_how_many_scans_it_would_lose(door, locale):
    text = await door.pass_of(await door.guest())
    phone = await door.phone(locale=locale)
    page = phone.page
    await page.click("#open-menu")
    await page.click("#unpair")
    assert await page.is_hidden("#unpair-unsent")
    await page.click("#menu-sheet [data-close]")
    await door.stop()
    await phone.scan(text)
    await page.click("#next")

    await page.click("#open-menu")
    await page.click("#unpair")

    assert "1" in await page.inner_text("#unpair-unsent")
    await eventually(lambda: page.is_visible("#unpair-yes"))


async def test_without_the_box_a_table_is_found_by_its_number_too(door):
    for table in ("T1", "T2"):
        await door.guest(table=table, guests=2)
    phone = await door.phone()
    await door.stop()
    await phone.is_down()
    await phone.page.click("#open-list")

    for _ in ("as the box told it", "as the list on the phone has it"):
        await phone.page.fill("#query", "t2")
        await phone.until(f"() => {TABLES}.join() === 'Terrasse 2'")
        await phone.page.reload()
        await phone.page.click("#open-list")


async def test_a_search_that_the_box_refuses_is_not_shown_as_nobody(door):
    await door.guest(table="T2", customer_phone="0600123457")
    phone = await door.phone()
    page = phone.page
    await page.click("#open-list")
    await page.fill("#query", "0000")
    await page.wait_for_selector("#guests-empty:not([hidden])")
    nobody = await page.inner_text("#guests-empty")

    for number in range(1, 40):
        status = await page.evaluate(
            "async (q) => (await fetch(`/terminal/v1/evening?q=${q}`)).status", f"{number:04}"
        )
    assert status == 429
    await page.fill("#query", "3457")

    await phone.until(
        "(nobody) => !['', nobody].includes(document.getElementById('guests-empty').innerText)",
        nobody,
    )


async def test_the_signed_list_is_read_where_the_boxs_own_does_not_come(door):
    await door.guest(table="T2", guests=2)
    phone = await door.unpaired()
    await phone.context.route("**/terminal/v1/evening*", lambda _route: None)  # never answered
    offered = await door.environment.database.write(offer_pairing, "Porte 1", "override")
    await phone.pair(offered.secret)

    await phone.page.click("#open-list")

    await phone.until(f"() => {TABLES}.join() === 'Terrasse 2'")


async def test_how_many_are_here_is_asked_only_where_there_is_a_choice(door):
    guest = await door.guest(guests=2)
    phone = await door.phone()
    await phone.page.click("#open-list")
    await phone.page.click("#guests button")
    assert await phone.page.is_visible("#guest-here")
    await phone.page.click("#guest-sheet [data-close]")

    await comes_in_elsewhere(door, guest)
    await shows(phone, "Terrasse 1", "1 / 2")
    await phone.page.click("#guests button")

    assert await phone.page.is_hidden("#guest-here")
    await phone.page.click("#guest-go")
    assert await phone.result() == "party_added"
