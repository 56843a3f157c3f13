"""Offline decisions reach the box exactly once, and refused ones are shown."""

import asyncio

import pytest

from appliance.door.terminals import (
    edit_terminal,
    offer_pairing,
    revoke_terminal,
    terminal_mark,
)
from tests.browser.accessibility import violations
from tests.browser.phones import ONLINE
from tests.waiting import until

HAS_FOCUS = "() => document.activeElement === document.querySelector('#conflict[open] button')"
_COUNTER = "want => document.getElementById('counter-said').textContent.includes(want)"


async def let_in_apart(door, phone):
    """Admit an unpaid party of two by override, while the box is unreachable."""
    guest = await door.guest(status="pending")
    text = await door.pass_of(guest)
    await phone.page.reload()
    await phone.is_ready()
    await phone.lose_box()
    assert await phone.scan(text) in {"payment_due", "unlisted"}
    await phone.let_in_anyway()
    await phone.page.click("#next")
    return guest


async def two_phones_apart(door):
    """Let one party in at two phones, while the box is off; start it again."""
    text = await door.pass_of(await door.guest(guests=3))
    phones = [await door.phone("Porte 1"), await door.phone("Porte 2", locale="ar-MA")]
    await door.stop()
    for phone in phones:
        assert await phone.scan(text) == "checked_in"
        await phone.page.click("#next")
    await door.start()
    return phones


async def test_a_conflict_appears_on_both_phones_and_can_be_acknowledged_by_keyboard(
    door,
):
    phones = await two_phones_apart(door)

    for phone, other in zip(phones, ("Porte 2", "Porte 1"), strict=True):
        page = phone.page
        await page.wait_for_selector("#conflict[open]", timeout=60_000)
        assert other in await page.inner_text("#conflict-text")
        assert await violations(phone.page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") == 390
        await page.keyboard.press("Escape")
        await page.wait_for_function(HAS_FOCUS)
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#conflict", state="hidden")
        assert phone.complaints == []

    async def is_understood():
        told = "SELECT count(*), count(acknowledged_at) FROM door_conflict"
        return await door.rows(told) == [(1, 1)]

    await until(is_understood)


@pytest.mark.parametrize("answer", ["late", "lost"])
async def test_an_undo_during_the_upload_of_its_scan_reaches_the_box(door, answer):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    await phone.lose_box()
    assert await phone.scan(text) == "checked_in"
    at_the_box, go_on = asyncio.Event(), asyncio.Event()

    async def hold(route):
        response = await route.fetch()
        at_the_box.set()
        await go_on.wait()
        await (route.abort() if answer == "lost" else route.fulfill(response=response))

    await phone.page.route("**/terminal/v1/sync", hold, times=1)
    await phone.find_box()
    await asyncio.wait_for(at_the_box.wait(), 60)
    assert await door.are_in(guest, 2)
    await phone.undo()
    go_on.set()
    await phone.page.evaluate(ONLINE)
    await phone.is_synced()

    assert await door.are_in(guest, 0)


async def swallow_answers(phone):
    """Drop the box's answers to scans; requests and the feed still work."""

    async def swallow(route):
        await route.fetch()

    await phone.page.route("**/terminal/v1/scans", swallow)


async def answer_again(phone):
    await phone.page.unroute("**/terminal/v1/scans")
    await phone.page.evaluate(ONLINE)


async def test_a_scan_whose_answer_is_lost_is_green_counted_once_and_can_be_undone(door):
    guest = await door.guest(guests=3)
    phone = await door.phone()
    await swallow_answers(phone)

    scanning = asyncio.create_task(phone.scan(await door.pass_of(guest)))
    await phone.until("() => document.getElementById('arrived').textContent === '3'")
    await phone.hurry("abort")
    assert await scanning == "checked_in"
    assert await phone.page.is_hidden("#verdict-offline")  # the box has decided
    assert await door.rows("SELECT result, admitted FROM scan_log") == [("checked_in", 3)]
    await phone.undo()
    await answer_again(phone)
    await phone.is_synced()

    await until(lambda: door.are_in(guest, 0))
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(0,)]
    assert phone.complaints == []


async def test_a_phone_that_stays_connected_switches_to_the_next_evening(door):
    door.clock.set("2026-11-21T23:00:00Z")
    await door.guest()
    phone = await door.phone(locale="en-GB")
    door.clock.set("2026-11-22T19:00:00Z")

    first = await door.guest(guests=3, date="2026-11-22")
    await door.guest(guests=4, table="T2", date="2026-11-22")
    await phone.until(_COUNTER, "0 of 7")
    assert "22 Nov" in await phone.page.inner_text("#evening")
    assert await phone.scan(await door.pass_of(first)) == "checked_in"

    await phone.until(_COUNTER, "3 of 7")


async def test_a_snapshot_with_an_unknown_signature_is_refused_with_a_notice(door):
    phone = await door.phone(locale="en-GB")

    async def forge(route):
        answer = await route.fetch()
        await route.fulfill(response=answer, json={**await answer.json(), "kid": 200})

    await phone.page.route("**/terminal/v1/snapshot", forge)
    await door.guest()

    await phone.page.wait_for_selector("#alone-text:not([hidden])")
    await phone.page.unroute("**/terminal/v1/snapshot")
    await phone.page.evaluate(ONLINE)
    await phone.page.wait_for_selector("#alone-text", state="hidden")


async def test_an_admission_before_the_role_was_taken_away_is_counted_and_reported(door):
    phone = await door.phone()
    guest = await let_in_apart(door, phone)
    ((id_, name),) = await door.rows("SELECT id, name FROM terminal WHERE role = 'override'")
    seen = terminal_mark(name, "override")
    await door.environment.database.write(edit_terminal, id_, seen, name, "search")

    await phone.find_box()
    await phone.is_synced()

    await phone.page.wait_for_selector("#conflict[open]", timeout=60_000)
    assert await door.are_in(guest, 2)
    assert await violations(phone.page) == []
    assert phone.complaints == []


async def test_a_scan_that_the_box_does_not_accept_is_shown_with_the_reason_until_it_is(door):
    phone = await door.phone()
    guest = await let_in_apart(door, phone)
    refusal = {"error": "Trop de demandes.", "error_en": "Too many.", "code": "BOX_BUSY"}
    await phone.page.route(
        "**/terminal/v1/sync", lambda route: route.fulfill(status=409, json=refusal)
    )

    await phone.find_box()
    await phone.page.wait_for_selector("#alone-text:has-text('Trop de demandes.')")
    await phone.page.unroute("**/terminal/v1/sync")
    await phone.page.evaluate(ONLINE)
    await phone.is_synced()

    await phone.page.wait_for_selector("#alone-text", state="hidden")
    assert await door.are_in(guest, 2)


async def test_an_unpaired_phone_reports_its_stored_scans_and_uploads_them_when_paired(door):
    phone = await door.phone()
    guest = await let_in_apart(door, phone)
    await phone.context.clear_cookies()
    await phone.find_box()
    await phone.page.wait_for_selector("#pairing:not([hidden])", timeout=60_000)
    await phone.page.wait_for_selector("#pair-problem:not([hidden])")
    await phone.page.reload()
    await phone.page.wait_for_selector("#pair-problem:not([hidden])")
    assert await door.are_in(guest, 0)

    offered = await door.environment.database.write(offer_pairing, "Porte 2", "override")
    await phone.pair(offered.secret)
    await phone.is_synced()

    assert await door.are_in(guest, 2)


async def test_a_revoked_phone_reports_how_many_scans_the_box_never_received(door):
    phone = await door.phone()
    await let_in_apart(door, phone)
    ((terminal_id,),) = await door.rows("SELECT id FROM terminal WHERE role = 'override'")
    await door.environment.database.write(revoke_terminal, terminal_id)

    await phone.find_box()

    await phone.page.wait_for_selector("#pairing:not([hidden])", timeout=60_000)
    assert "2" in await phone.page.inner_text("#pair-problem")


async def test_a_phone_whose_browser_deleted_scans_reports_their_number_until_acknowledged(
    door,
):
    guest = await door.guest(guests=3)
    text = await door.pass_of(guest)
    phone = await door.phone()
    await phone.lose_box()
    assert await phone.scan(text) == "checked_in"
    session = await phone.context.new_cdp_session(phone.page)
    await phone.page.goto("about:blank")
    await session.send(
        "Storage.clearDataForOrigin",
        {"origin": door.url, "storageTypes": "indexeddb,cache_storage,service_workers"},
    )
    await phone.page.unroute("**/terminal/v1/**")

    for _ in range(2):  # until it is read
        await phone.open()
        await phone.page.wait_for_selector("#missing-sheet[open]")
        assert "3" in await phone.page.inner_text("#missing-text")

    await phone.page.click("#missing-ok")
    await phone.page.reload()
    await phone.is_ready()
    assert await phone.page.is_hidden("#missing-sheet")
    assert await door.are_in(guest, 0)
