"""A check-in that was a mistake, taken back from the list; and when and where a party came in."""

import asyncio

import aiohttp

from appliance.actions.check_in_by_staff import check_in_by_staff
from appliance.actions.create_staff import create_staff
from appliance.actions.issue_terminal import issue_terminal
from appliance.store.staff import find_staff
from tests.browser.accessibility import violations
from tests.browser.phones import eventually
from tests.browser.test_door_decided_apart import is_apart, is_back

UNDOS = "SELECT kind, reason, admitted FROM scan WHERE kind = 'undo'"


async def take_back(phone):
    """From the list, because they left again."""
    await phone.page.click("#open-list")
    await phone.page.click("#guests button")
    await phone.page.click("#guest-undo")
    assert await violations(phone.page) == []
    await phone.page.click("#guest-reasons [data-reason='take_back.left']")
    await eventually(lambda: is_undone(phone))


async def is_undone(phone):
    return await phone.page.get_attribute("#verdict", "data-result") == "undone"


async def are_in(door, guest, people):
    return (await door.now_of(guest)).arrived == people


async def another_door_admits(door, guest):
    _, token = await door.environment.database.write(issue_terminal, "Porte 2")
    headers = {"Authorization": f"Bearer {token}"}
    body = {"scanId": "elsewhere", "reservationId": guest.id}
    async with (
        aiohttp.ClientSession(headers=headers) as client,
        client.post(f"{door.url}/terminal/v1/check-ins", json=body) as response,
    ):
        assert (await response.json())["result"] == "checked_in"


async def test_hours_later_the_check_in_of_another_door_is_taken_back_with_a_reason(door):
    guest = await door.guest(guests=2)
    phone = await door.phone()
    await another_door_admits(door, guest)
    door.clock.advance(7200)
    await phone.until("() => document.getElementById('arrived').textContent === '2'")

    await take_back(phone)

    assert await door.rows(UNDOS) == [("undo", "Repartis", -2)]
    assert await are_in(door, guest, 0)
    await phone.page.click("#next")
    assert await phone.page.is_hidden("#guest-sheet")
    await phone.page.click("#guests button")
    assert await phone.page.is_hidden("#guest-undo")
    assert phone.complaints == []


async def test_without_the_box_the_phone_takes_back_what_it_decided_itself(door):
    guest = await door.guest(guests=2)
    phone = await door.phone()
    await door.stop()
    await phone.is_down()
    await phone.page.click("#open-list")
    await phone.page.click("#guests button")
    await phone.page.click("#guest-go")
    assert await phone.result() == "checked_in"
    await phone.page.click("#next")
    await phone.page.click("#list-sheet [data-close]")

    await take_back(phone)
    await door.start()

    await phone.is_synced()
    assert await are_in(door, guest, 0)


async def test_what_a_phone_takes_back_alone_is_in_the_log_with_the_reason(door):
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
    assert await door.rows("SELECT kind, result, admitted, reason FROM scan") == [
        ("pass", "undone", 0, "Repartis")
    ]
    assert await are_in(door, guest, 0)


async def test_the_reason_reaches_a_box_that_had_counted_them_before_it_was_lost(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    phone = await door.phone()
    await is_apart(phone)
    assert await phone.scan(text) == "checked_in"
    await phone.page.click("#next")
    lost = asyncio.Event()

    async def lose(route):
        await route.fetch()
        await route.abort()
        lost.set()

    await phone.page.unroute("**/terminal/v1/**")
    await phone.page.route("**/terminal/v1/sync", lose, times=1)
    await phone.page.evaluate("dispatchEvent(new Event('online'))")
    await asyncio.wait_for(lost.wait(), 60)
    await phone.page.route("**/terminal/v1/**", lambda route: route.abort())
    assert await are_in(door, guest, 2)

    await take_back(phone)
    await is_back(phone)

    assert await door.rows(UNDOS) == [("undo", "Repartis", -2)]
    assert await are_in(door, guest, 0)


async def test_a_check_in_of_the_box_is_not_taken_back_without_it(door):
    guest = await door.guest(guests=2)
    phone = await door.phone()
    await another_door_admits(door, guest)
    await phone.until("() => document.getElementById('arrived').textContent === '2'")
    await door.stop()
    await phone.is_down()

    await phone.page.click("#open-list")
    await phone.page.click("#guests button")
    await phone.page.click("#guest-undo")
    await phone.page.fill("#guest-reason", "Erreur")
    await phone.page.keyboard.press("Enter")

    assert await phone.result() == "refused"
    assert "box" in await phone.page.inner_text("#verdict-sentence")


async def test_an_undo_that_reaches_the_box_after_its_ten_seconds_says_why_by_itself(door):
    guest = await door.guest(guests=2)
    phone = await door.phone()
    await phone.scan(await door.pass_of(guest))
    door.clock.advance(10.5)

    await phone.page.click("#undo")

    await eventually(lambda: is_undone(phone))
    assert await are_in(door, guest, 0)
    assert await door.rows(UNDOS) == [("undo", "Annulé aussitôt à la porte", -2)]


async def test_without_the_box_a_party_that_came_in_here_shows_when_and_where(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    phone = await door.phone("Porte 7")
    await door.stop()
    await phone.is_down()
    assert await phone.scan(text) == "checked_in"
    await phone.page.reload()
    await phone.page.wait_for_selector("#bar:not([hidden])")

    assert await phone.scan(text) == "already_checked_in"

    sentence = await phone.page.inner_text("#verdict-sentence")
    assert "Porte 7" in sentence
    assert "19:0" in sentence


async def test_without_the_box_a_party_that_came_in_elsewhere_shows_when_and_where(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    phone = await door.phone()
    await another_door_admits(door, guest)
    await phone.until("() => document.getElementById('arrived').textContent === '2'")
    await door.stop()
    await phone.is_down()

    assert await phone.scan(text) == "already_checked_in"

    sentence = await phone.page.inner_text("#verdict-sentence")
    assert "Entrés à" in sentence
    assert "Porte 2" in sentence


async def test_a_phone_that_was_started_without_the_box_knows_where_they_came_in_by_its_list(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    await another_door_admits(door, guest)
    phone = await door.phone(role="scan")
    await door.stop()
    await phone.page.reload()
    await phone.page.wait_for_selector("#bar:not([hidden])")

    assert await phone.scan(text) == "already_checked_in"

    assert "Porte 2" in await phone.page.inner_text("#verdict-sentence")


async def test_who_let_them_in_is_told_in_every_language(door):
    guest = await door.guest(guests=2)

    def by_yasmine(tx):
        person = find_staff(tx, create_staff(tx, "Yasmine", "owner").staff_id)
        settings = {"arrivals": None, "reason": None, "early_minutes": 120}
        check_in_by_staff(tx, person, guest.id, "one", **settings)

    await door.environment.database.write(by_yasmine)
    phone = await door.phone()
    await phone.scan(await door.pass_of(guest))
    assert "Yasmine" in await phone.page.inner_text("#verdict-sentence")
    await phone.page.click("#next")

    await phone.page.click("#open-menu")
    await phone.page.click("#menu-sheet button[lang=en]")
    await phone.page.click("#menu-sheet [data-close]")
    await phone.page.wait_for_timeout(3100)  # it ignores what it has just read
    await phone.scan(await door.pass_of(guest))

    sentence = await phone.page.inner_text("#verdict-sentence")
    assert "In since" in sentence
    assert "Yasmine" in sentence
