"""The box is out of reach: the phones go on, forget nothing, and tell it afterwards."""

import asyncio

import pytest

from appliance.actions.offer_pairing import offer_pairing

_LATER = """seconds => {
  const before = Date.now;
  Date.now = () => before() + seconds * 1000;
}"""


async def test_the_phone_answers_from_list_and_signature_and_tells_the_box_afterwards(door):
    guest, unpaid = await door.guest(guests=3), await door.guest(table="T2", status="pending")
    text, other = await door.pass_of(guest), await door.pass_of(unpaid)
    phone = await door.phone()
    await door.stop()

    assert await phone.scan(text) == "checked_in"
    assert await phone.page.is_visible("#verdict-offline")
    assert await phone.scan(other) == "payment_due"
    assert await phone.scan(f"{text[:70]}{'A' if text[70] != 'A' else 'B'}{text[71:]}") == (
        "bad_signature"
    )
    assert await phone.scan("HTTPS://EXAMPLE.ORG/1234") == "unknown_code"
    await door.start()
    await phone.is_synced()

    assert (await door.now_of(guest)).arrived == 3
    arrived = [row for row in await door.rows("SELECT type FROM event") if "checked_in" in row[0]]
    assert len(arrived) == 1
    assert phone.complaints == []


async def test_a_genuine_pass_that_is_on_no_list_is_amber(door):
    phone = await door.phone()
    await phone.page.route("**/terminal/v1/**", lambda route: route.abort())
    await phone.page.evaluate("dispatchEvent(new Event('offline'))")
    await phone.is_down()
    booked_since = await door.guest()

    assert await phone.scan(await door.pass_of(booked_since)) == "unlisted"
    assert await phone.page.get_attribute("#verdict", "data-colour") == "amber"


@pytest.mark.proves("S33")
async def test_a_list_of_twelve_hours_lets_nobody_in(door):
    door.clock.set("2026-11-21T08:00:00Z")
    guest, second = await door.guest(), await door.guest(table="T2")
    text, other = await door.pass_of(guest), await door.pass_of(second)
    phone = await door.phone()
    await door.stop()

    # Only the calendar moves: with a whole false clock a scanner's keys lose their time stamps.
    await phone.page.evaluate(_LATER, 11 * 3600 + 50 * 60)
    assert await phone.scan(text) == "checked_in"
    await phone.page.evaluate(_LATER, 10 * 60 + 1)
    assert await phone.scan(other) == "old_list"


async def test_a_reload_and_a_killed_browser_forget_neither_the_guests_nor_the_scans(
    door, tmp_path
):
    guest, second = await door.guest(), await door.guest(table="T2")
    text, other = await door.pass_of(guest), await door.pass_of(second)
    profile = tmp_path / "phone"
    phone = await door.phone(profile=profile)
    await phone.context.close()  # Chromium writes its cookies down every half minute, or now
    phone = await door.unpaired(profile=profile)
    await phone.open()
    await phone.is_ready()
    await door.stop()
    assert await phone.scan(text) == "checked_in"

    await phone.page.reload()
    await phone.page.wait_for_selector("#bar:not([hidden])")
    assert await phone.scan(text) == "already_checked_in"
    await phone.kill()
    again = await door.unpaired(profile=profile)
    await again.open()
    await again.page.wait_for_selector("#bar:not([hidden])")
    assert await again.scan(text) == "already_checked_in"
    assert await again.scan(other) == "checked_in"
    await door.start()
    await again.is_synced()

    assert (await door.now_of(guest)).arrived == 2
    assert (await door.now_of(second)).arrived == 2


async def test_a_phone_that_lost_its_cookie_brings_its_scans_when_it_is_paired_again(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    await door.stop()
    assert await phone.scan(text) == "checked_in"
    await phone.context.clear_cookies()

    await door.start()
    await phone.page.wait_for_selector("#pairing:not([hidden])", timeout=60_000)
    assert (await door.now_of(guest)).arrived == 0
    offered = await door.environment.database.write(offer_pairing, "Porte 1", "override")
    await phone.pair(offered.secret)
    await phone.is_synced()

    assert (await door.now_of(guest)).arrived == 2


async def test_two_doors_apart_admit_one_party_and_both_are_shown_the_one_conflict(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    first, second = await door.phone("Porte 1"), await door.phone("Porte 2")
    await door.stop()

    assert await first.scan(text) == "checked_in"
    assert await second.scan(text) == "checked_in"
    await door.start()
    for phone in (first, second):
        await phone.is_synced()

    for phone, other in ((first, "Porte 2"), (second, "Porte 1")):
        await phone.page.wait_for_selector("#conflict[open]", timeout=60_000)
        assert other in await phone.page.inner_text("#conflict-text")
        await phone.page.click("#conflict-ok")
        await phone.page.wait_for_selector("#conflict", state="hidden")
        await phone.page.reload()
        await phone.is_ready()
        assert not await phone.page.is_visible("#conflict")
    told = "SELECT count(*), count(acknowledged_at) FROM door_conflict"
    for _ in range(1200):
        if await door.rows(told) == [(1, 1)]:
            break
        await asyncio.sleep(0.05)
    assert await door.rows(told) == [(1, 1)]


async def test_a_list_that_has_not_changed_is_not_sent_again(door):
    text = await door.pass_of(await door.guest())
    phone = await door.phone()
    answers = []
    phone.page.on(
        "response",
        lambda answer: answers.append(answer.status) if "/snapshot" in answer.url else None,
    )

    async with phone.page.expect_response(lambda answer: "/snapshot" in answer.url):
        await phone.page.reload()
    await phone.is_ready()
    await door.stop()

    assert set(answers) == {304}
    assert await phone.scan(text) == "checked_in"


async def test_a_box_that_answers_too_late_is_not_waited_for_and_nothing_counts_twice(door):
    guest = await door.guest(guests=4)
    phone = await door.phone()
    # The request arrives and is decided; its answer never comes back.
    await phone.page.evaluate(
        """() => {
          const real = window.fetch;
          window.fetch = async (url, options) => {
            if (!String(url).endsWith("/scans")) return real(url, options);
            await real(url, { ...options, signal: undefined });
            await new Promise((_done, fail) =>
              options.signal.addEventListener("abort", () => fail(new Error("late"))));
          };
        }"""
    )

    result = await phone.scan(await door.pass_of(guest))
    await phone.is_synced()

    assert result in {"checked_in", "already_checked_in"}
    assert (await door.now_of(guest)).arrived == 4
    assert await door.rows("SELECT count(*) FROM scan") == [(1,)]
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(0,)]


async def test_what_is_undone_while_apart_has_not_happened(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    await door.stop()
    await phone.page.evaluate("dispatchEvent(new Event('offline'))")
    await phone.is_down()

    assert await phone.scan(text) == "checked_in"
    await phone.page.click("#undo")
    await phone.until("() => document.getElementById('verdict').dataset.result === 'undone'")
    await door.start()
    await phone.is_synced()

    assert (await door.now_of(guest)).arrived == 0
