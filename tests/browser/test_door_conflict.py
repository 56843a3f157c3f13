"""One party let in by two doors apart: both are told, and the message is for everybody's hands."""

import os
from pathlib import Path

from tests.browser.accessibility import violations
from tests.browser.phones import eventually

SHOTS = os.environ.get("SHOTS")
# Whether the button can be pressed, each time that a conflict comes up or is uncovered.
WATCH = """() => {
  window.held = [];
  const conflict = document.getElementById("conflict");
  const note = () => window.held.push(document.getElementById("conflict-ok").disabled);
  let shown = "";
  new MutationObserver(() => {
    if (shown !== conflict.dataset.id) note();
    shown = conflict.dataset.id;
  }).observe(conflict, { attributeFilter: ["data-id"] });
  document.getElementById("verdict").addEventListener("close", () => conflict.open && note());
}"""
HAS_FOCUS = "() => document.activeElement === document.querySelector('#conflict[open] button')"


async def test_the_conflict_is_shown_on_both_phones_without_a_fault_and_understood_by_keyboard(
    door,
):
    text = await door.pass_of(await door.guest(guests=3))
    phones = [await door.phone("Porte 1"), await door.phone("Porte 2", locale="ar-MA")]
    await door.stop()
    for phone in phones:
        assert await phone.scan(text) == "checked_in"
        await phone.page.click("#next")
    await door.start()

    for phone, other in zip(phones, ("Porte 2", "Porte 1"), strict=True):
        page = phone.page
        await page.wait_for_selector("#conflict[open]", timeout=60_000)
        assert other in await page.inner_text("#conflict-text")
        assert await violations(phone.page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") == 390
        if SHOTS:
            await page.screenshot(path=Path(SHOTS) / f"conflict-{other[-1]}.png")

        await page.keyboard.press("Escape")
        await page.wait_for_function(HAS_FOCUS)
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#conflict", state="hidden")
        assert phone.complaints == []

    async def is_understood():
        told = "SELECT count(*), count(acknowledged_at) FROM door_conflict"
        return await door.rows(told) == [(1, 1)]

    await eventually(is_understood)


async def test_a_scan_while_a_conflict_shows_is_decided_and_the_conflict_waits(door):
    text = await door.pass_of(await door.guest(guests=3))
    following = await door.pass_of(await door.guest(table="T2"))
    phones = [await door.phone("Porte 1"), await door.phone("Porte 2")]
    await door.stop()
    for phone in phones:
        assert await phone.scan(text) == "checked_in"
        await phone.page.click("#next")
    await door.start()
    page = phones[0].page
    await page.wait_for_selector("#conflict[open]", timeout=60_000)

    assert await phones[0].scan(following) == "checked_in"

    await page.keyboard.press("Escape")
    await page.wait_for_selector("#verdict", state="hidden")
    assert await page.is_visible("#conflict-ok")
    assert await door.rows("SELECT count(acknowledged_at) FROM door_conflict") == [(0,)]


async def test_the_next_verdict_comes_up_above_a_conflict_that_came_above_the_last_one(door):
    text = await door.pass_of(await door.guest(guests=3))
    following = await door.pass_of(await door.guest(table="T2", status="cancelled"))
    phones = [await door.phone("Porte 1"), await door.phone("Porte 2")]
    await door.stop()
    for phone in phones:
        assert await phone.scan(text) == "checked_in"
    await door.start()
    page = phones[0].page
    await page.wait_for_selector("#conflict[open]", timeout=60_000)

    assert await phones[0].scan(following) == "cancelled"

    await page.click("#next", timeout=3000)
    await page.wait_for_selector("#verdict", state="hidden")
    await page.click("#conflict-ok", timeout=3000)
    await page.wait_for_selector("#conflict", state="hidden")
    assert phones[0].complaints == []


async def test_no_conflict_is_understood_by_the_second_half_of_a_double_tap(door):
    texts = [await door.pass_of(await door.guest(guests=3, table=table)) for table in ("T1", "T2")]
    following = await door.pass_of(await door.guest(table="T3", status="cancelled"))
    phones = [await door.phone("Porte 1"), await door.phone("Porte 2")]
    await door.stop()
    for phone in phones:
        for text in texts:
            assert await phone.scan(text) == "checked_in"
    await phones[0].page.evaluate(WATCH)
    await door.start()
    page = phones[0].page
    await phones[0].until("() => window.held.length >= 1")

    assert await phones[0].scan(following) == "cancelled"
    await page.click("#next")
    await phones[0].until("() => window.held.length >= 2")
    await page.click("#conflict-ok")  # which waits until it can be pressed
    await phones[0].until("() => window.held.length >= 3")
    await page.click("#conflict-ok")
    await page.wait_for_selector("#conflict", state="hidden")

    assert set(await page.evaluate("window.held")) == {True}
    assert phones[0].complaints == []
