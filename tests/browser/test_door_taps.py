"""Impatient fingers: one press is one deed, and going on loses no count."""

import asyncio

import pytest

from tests.browser.phones import eventually

# Where a finger taps it taps again, whatever has come up there meanwhile. The second tap bears the
# time at which a finger makes it, however late a busy machine passes it on.
TAP = """([[x, y], at]) => {
  const there = document.elementFromPoint(x, y);
  const tap = new MouseEvent("click",
    { bubbles: true, cancelable: true, detail: 1, clientX: x, clientY: y });
  if (at) Object.defineProperty(tap, "timeStamp", { value: at });
  there.dispatchEvent(tap);
  return tap.timeStamp;
}"""
APART = 0.2  # seconds


async def over_a_slow_network(phone, seconds):
    """Each answer takes its time."""

    async def hold(route):
        await asyncio.sleep(seconds)
        await route.continue_()

    await phone.page.route("**/terminal/v1/scans", hold)
    await phone.page.route("**/terminal/v1/check-ins", hold)


async def middle_of(phone, selector):
    """Where a finger would tap it."""
    box = await phone.page.locator(selector).bounding_box()
    return [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]


async def tap_twice(phone, selector):
    """A double tap in the middle of it."""
    await tap_twice_at(phone, await middle_of(phone, selector))


async def tap_twice_at(phone, spot):
    """A double tap, a fifth of a second apart."""
    first = await phone.page.evaluate(TAP, [spot, None])
    await asyncio.sleep(APART)
    await phone.page.evaluate(TAP, [spot, first + 1000 * APART])


async def test_two_taps_on_a_reason_let_the_party_in_once(door):
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
    assert await door.rows("SELECT count(*) FROM scan WHERE admitted > 0") == [(1,)]


@pytest.mark.parametrize("seconds", [0, 0.4])
async def test_two_taps_on_check_show_the_verdict_of_one(door, seconds):
    guest = await door.guest(guests=2, access_code="SVC-7K2M")
    phone = await door.phone()
    await over_a_slow_network(phone, seconds)

    await phone.page.click("#open-code")
    await phone.page.fill("#code", "7K2M")
    await tap_twice(phone, "#code-go")

    assert await phone.result() == "checked_in"
    await asyncio.sleep(1)
    assert await phone.result() == "checked_in"
    assert await phone.page.is_visible("#next")
    assert await door.rows("SELECT count(*) FROM scan") == [(1,)]
    assert (await door.now_of(guest)).arrived == 2


async def test_two_taps_in_the_guest_sheet_open_nobody_else(door):
    for table in ("T1", "T2"):
        await door.guest(guests=2, table=table)
    phone = await door.phone()
    await over_a_slow_network(phone, 0.4)

    await phone.page.click("#open-list")
    await phone.page.click("#guests button")
    await tap_twice(phone, "#guest-go")

    assert await phone.result() == "checked_in"
    await phone.page.keyboard.press("Enter")
    await phone.page.wait_for_selector("#verdict", state="hidden")
    assert await phone.page.is_visible("#list-sheet")
    assert await phone.page.is_hidden("#guest-sheet")
    assert await door.rows("SELECT count(*) FROM scan") == [(1,)]


async def test_two_taps_on_a_row_let_nobody_in(door):
    for hour in range(17, 22):
        for table in ("T1", "T2"):
            await door.guest(table=table, slot=f"{hour}:00")
    phone = await door.phone()
    await phone.page.click("#open-list")
    await phone.page.click("#guests button")
    spot = await middle_of(phone, "#guest-go")
    await phone.page.click("#guest-sheet [data-close]")
    await asyncio.sleep(0.5)

    await tap_twice_at(phone, spot)

    assert await phone.page.is_visible("#guest-sheet")
    await asyncio.sleep(0.5)
    assert await door.rows("SELECT count(*) FROM scan") == [(0,)]


async def test_two_taps_on_let_in_anyway_ask_for_the_reason(door):
    guest = await door.guest(guests=2, status="pending")
    phone = await door.phone()
    await phone.scan(await door.pass_of(guest))

    await tap_twice(phone, "#override")

    assert await phone.page.is_visible("#reasons")


async def test_next_right_after_fewer_are_here_counts_the_fewer_and_shows_nothing_more(door):
    guest = await door.guest(guests=4)
    phone = await door.phone()
    await phone.scan(await door.pass_of(guest))

    await phone.page.click("#verdict-stepper [data-step='-1']")
    await phone.page.click("#next")

    await eventually(lambda: are_in(door, guest, 3))
    await asyncio.sleep(0.5)
    assert await phone.page.is_hidden("#verdict")


async def test_the_next_code_right_after_fewer_are_here_counts_both_and_shows_its_own(door):
    guest, following = await door.guest(guests=4), await door.guest(table="T2", status="cancelled")
    phone = await door.phone()
    await phone.scan(await door.pass_of(guest))

    await phone.page.click("#verdict-stepper [data-step='-1']")
    assert await phone.scan(await door.pass_of(following)) == "cancelled"

    await eventually(lambda: are_in(door, guest, 3))
    await asyncio.sleep(0.5)
    assert await phone.result() == "cancelled"


async def are_in(door, guest, people):
    return (await door.now_of(guest)).arrived == people
