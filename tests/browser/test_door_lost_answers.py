"""The box has decided and its answer is lost or late: nobody is in by their own check-in."""

import pytest

from tests.browser.phones import eventually

ONLINE = "dispatchEvent(new Event('online'))"
HEARD = """async () => {
  const open = indexedDB.open("venuebox-door-live");
  const database = await new Promise((done) => (open.onsuccess = () => done(open.result)));
  const request = database.transaction("kept").objectStore("kept").get("asked");
  const asked = await new Promise((done) => (request.onsuccess = () => done(request.result)));
  database.close();
  return Boolean(asked?.heard);
}"""


async def swallow_answers(phone):
    """The box hears and decides, the feed goes on; its answers to scans never arrive."""

    async def swallow(route):
        await route.fetch()

    await phone.page.route("**/terminal/v1/scans", swallow)


async def answer_again(phone):
    await phone.page.unroute("**/terminal/v1/scans")
    await phone.page.evaluate(ONLINE)


async def is_in(door, guest):
    return (await door.now_of(guest)).arrived == guest.guests


async def test_a_guest_whose_answer_is_lost_is_welcome_and_counted_once(door):
    guest = await door.guest(guests=3)
    phone = await door.phone()
    await swallow_answers(phone)

    assert await phone.scan(await door.pass_of(guest)) == "checked_in"
    assert await phone.page.is_hidden("#verdict-offline")  # it was the box that decided
    assert "3 / 3" in await phone.page.inner_text("#verdict-facts")

    await answer_again(phone)
    await phone.is_synced()
    assert (await door.now_of(guest)).arrived == 3
    assert await door.rows("SELECT result, admitted FROM scan") == [("checked_in", 3)]
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(0,)]
    assert phone.complaints == []


async def test_the_rest_of_a_party_whose_answer_is_lost_is_welcome_too(door):
    guest = await door.guest(guests=3)
    text = await door.pass_of(guest)
    other, phone = await door.phone("Porte 2"), await door.phone()
    await other.scan(text)
    await other.page.click("#verdict-stepper [data-step='-1']")
    await eventually(lambda: are_in(door, guest, 2))
    await phone.until("() => document.getElementById('arrived').textContent === '2'")
    await swallow_answers(phone)

    assert await phone.scan(text) == "party_added"
    assert (await door.now_of(guest)).arrived == 3


async def are_in(door, guest, people):
    return (await door.now_of(guest)).arrived == people


async def test_a_check_in_whose_answer_was_lost_is_taken_back_at_once(door):
    guest = await door.guest()
    phone = await door.phone()
    await swallow_answers(phone)
    assert await phone.scan(await door.pass_of(guest)) == "checked_in"

    await phone.page.click("#undo")
    await phone.until("() => document.getElementById('verdict').dataset.result === 'undone'")
    await answer_again(phone)
    await phone.is_synced()

    await eventually(lambda: are_in(door, guest, 0))


@pytest.mark.parametrize("still", ["answers", "is silent"])
async def test_a_page_that_was_loaded_anew_meanwhile_asks_the_same_once_more(door, still):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    await swallow_answers(phone)
    await phone.wedge(text)
    await eventually(lambda: is_in(door, guest))
    await phone.until(HEARD)

    if still == "answers":
        await phone.page.unroute("**/terminal/v1/scans")
    await phone.page.reload()
    await phone.is_ready()

    assert await phone.scan(text) == "checked_in"
    assert await door.rows("SELECT count(*) FROM scan") == [(1,)]
    await answer_again(phone)
    await phone.is_synced()
    await phone.page.keyboard.press("Escape")
    await phone.page.wait_for_timeout(3000)  # a USB scanner's code counts again by then
    assert await phone.scan(text) == "already_checked_in"
    assert (await door.now_of(guest)).arrived == 2
