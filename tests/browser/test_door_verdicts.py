"""Every verdict on a phone: its colour, its shape and its word. `SHOTS=folder` keeps pictures."""

import os
from pathlib import Path

import pytest

from appliance.model.verdict import COLOURS
from appliance.store.guest_passes import pass_text
from tests.browser.door_world import eventually

SHOTS = os.environ.get("SHOTS")
STATES = {
    "not_yet": {"date": "2026-11-22"},
    "too_late": {"date": "2026-11-20"},
    "not_confirmed": {"status": "requested"},
    "payment_due": {"status": "pending"},
    "cancelled": {"status": "cancelled"},
    "declined": {"status": "declined"},
}


async def scanned(door, phone, result):
    """Bring a guest about whom the door says `result`, and scan them."""
    guest = await door.guest(guests=4, notes="Anniversaire", **STATES.get(result, {}))
    text = await door.pass_of(guest)
    if result in {"already_checked_in", "undone"}:
        await phone.scan(text)
        if result == "undone":
            await phone.page.click("#undo")
            await eventually(lambda: shows(phone, "undone"))
            return await phone.result()
        await phone.page.reload()  # it ignores what it has just read
        await phone.is_ready()
    elif result == "revoked":
        await door.environment.database.write(
            lambda tx: tx.execute("UPDATE reservation SET generation = generation + 1")
        )
    elif result == "wrong_venue":
        text = await foreign(door, guest)
    elif result == "bad_signature":
        text = text[:-4] + ("AAAA" if text[-4:] != "AAAA" else "BBBB")
    elif result == "unknown_code":
        text = "HELLO WORLD 12345"
    return await phone.scan(text)


async def shows(phone, result):
    return await phone.page.get_attribute("#verdict", "data-result") == result


async def foreign(door, guest):
    """A pass of the same form that another box has signed."""

    def of_another(reader):
        return pass_text(reader, door.environment.keyring, "live", guest)

    await door.environment.database.write(
        lambda tx: tx.execute("UPDATE venue SET id = '0b5e2f5e-6c0a-4d55-8a1e-3a4f5b6c7d8f'")
    )
    text = await door.environment.database.read(of_another)
    await door.environment.database.write(
        lambda tx: tx.execute("UPDATE venue SET id = '0b5e2f5e-6c0a-4d55-8a1e-3a4f5b6c7d8e'")
    )
    return text


@pytest.mark.parametrize(
    "result",
    ["checked_in", "already_checked_in", *STATES, "revoked", "wrong_venue", "bad_signature",
     "unknown_code", "undone"],
)  # fmt: skip
async def test_each_verdict_has_its_colour_and_its_words(door, result):
    phone = await door.phone()

    found = await scanned(door, phone, result)

    assert found == result
    page = phone.page
    assert await page.get_attribute("#verdict", "data-colour") == COLOURS[result]
    assert (await page.inner_text("#verdict-sentence")).strip()
    if SHOTS:
        await page.wait_for_timeout(300)
        await page.screenshot(path=Path(SHOTS) / f"{result}.png")
    assert phone.complaints == []
