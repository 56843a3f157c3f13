"""Every verdict on a phone: its colour, its shape and its word.

`SHOTS=folder` keeps pictures, in French and in Arabic.
"""

import os
from pathlib import Path

import aiohttp
import pytest

from appliance.actions.issue_terminal import issue_terminal
from appliance.model.verdict import COLOURS
from appliance.store.guest_passes import pass_text
from tests.appliance.arrivals import add_reservation
from tests.browser.accessibility import violations
from tests.browser.phones import eventually

SHOTS = os.environ.get("SHOTS")
LOCALES = ["fr-MA", "ar-MA"] if SHOTS else ["fr-MA"]
STATES = {
    "not_yet": {"date": "2026-11-22"},
    "too_late": {"date": "2026-11-20"},
    "not_confirmed": {"status": "requested"},
    "payment_due": {"status": "pending"},
    "cancelled": {"status": "cancelled"},
    "declined": {"status": "declined"},
}
OWN = {"unlisted": "amber", "old_list": "amber", "needs_box": "amber", "refused": "grey"}
UNLIKE_OTHERS = {"ambiguous", "undone", "error", "needs_box"}  # what axe sees nowhere else
_LATER = """seconds => {
  const before = Date.now;
  Date.now = () => before() + seconds * 1000;
}"""


async def scanned(door, phone, result):
    """Bring a guest about whom the door says `result`, and scan them."""
    guest = await door.guest(guests=4, notes="Anniversaire", **STATES.get(result, {}))
    text = await door.pass_of(guest)
    if result in {"wrong_venue", "test_code"}:
        text = await (foreign(door, guest) if result == "wrong_venue" else of_the_test_one(door))
    elif result == "bad_signature":
        text = text[:-4] + ("AAAA" if text[-4:] != "AAAA" else "BBBB")
    elif result == "unknown_code":
        text = "HELLO WORLD 12345"
    elif result in BROUGHT_ABOUT:
        shown = await BROUGHT_ABOUT[result](door, phone, text)
        if shown is not None:
            return shown
    return await phone.scan(text)


async def is_in(_door, phone, text):
    await phone.scan(text)
    await phone.page.reload()  # it ignores what it has just read
    await phone.is_ready()


async def is_taken_back(_door, phone, text):
    await phone.scan(text)
    await phone.page.click("#undo")
    await eventually(lambda: shows(phone, "undone"))
    return await phone.result()


async def is_partly_in(door, _phone, text):
    await another_door_admits(door, text, 2)


async def are_too_many(door, phone, text):
    """Three are about to be let in from the list when two of the four come in elsewhere."""
    await phone.page.click("#open-list")
    await phone.page.click("#guests button")
    await phone.page.click("#guest-stepper [data-step='-1']")
    await another_door_admits(door, text, 2)
    await phone.page.click("#guest-go")
    return await phone.result()


async def have_one_name(door, phone, _text):
    await door.guest(table="T2", slot="22:00", guests=2)
    return await typed(phone, "Salma")


async def has_an_old_pass(door, _phone, _text):
    await door.environment.database.write(
        lambda tx: tx.execute("UPDATE reservation SET generation = generation + 1")
    )


async def meets_a_fault(_door, phone, _text):
    """Something between box and phone makes a success of the box's own fault."""
    fault = {
        "scanId": "one", "result": "error", "colour": "grey", "say": None, "overridable": False,
        "actions": ["scan_again"], "admitted": 0, "reservation": None, "firstCheckIn": None,
    }  # fmt: skip
    await phone.page.route("**/terminal/v1/scans", lambda route: route.fulfill(json=fault))


BROUGHT_ABOUT = {
    "already_checked_in": is_in,
    "undone": is_taken_back,
    "party_added": is_partly_in,
    "party_full": are_too_many,
    "ambiguous": have_one_name,
    "revoked": has_an_old_pass,
    "error": meets_a_fault,
}


async def said_by_itself(door, result, locale):
    """A phone, and what it said alone."""
    door.clock.set("2026-11-21T08:00:00Z")  # twelve hours later it is still the same evening
    text = await door.pass_of(await door.guest(guests=4))
    phone = await door.phone(locale=locale)
    if result == "refused":
        ten = f"[{', '.join([str(door.clock.now())] * 10)}]"
        await door.environment.database.write(
            lambda tx: tx.execute("UPDATE terminal SET wrong_codes = :ten", {"ten": ten})
        )
        return phone, await typed(phone, "SVC-2222")
    await phone.page.route("**/terminal/v1/**", lambda route: route.abort())
    await phone.page.evaluate("dispatchEvent(new Event('offline'))")
    await phone.is_down()
    if result == "old_list":
        await phone.page.evaluate(_LATER, 12 * 3600 + 1)
    elif result == "unlisted":
        text = await door.pass_of(await door.guest(table="T2", guests=4))
    elif result == "needs_box":
        text = "https://box.example/access/abcdefghijklmnop"
    return phone, await phone.scan(text)


async def typed(phone, text):
    """Type it where codes and names are typed."""
    await phone.page.click("#open-code")
    await phone.page.fill("#code", text)
    await phone.page.keyboard.press("Enter")
    return await phone.result()


async def another_door_admits(door, text, arrivals):
    """Some of the party come in elsewhere."""
    _, token = await door.environment.database.write(issue_terminal, "Porte 2")
    body = {"scanId": "elsewhere", "code": text, "arrivals": arrivals}
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as client,
        client.post(f"{door.url}/terminal/v1/scans", json=body) as response,
    ):
        assert (await response.json())["result"] == "checked_in"


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


async def of_the_test_one(door):
    """A pass that the box's test environment has signed with its own key."""
    test = door.other_environment
    guest = await test.database.write(add_reservation)
    return await test.database.read(pass_text, test.keyring, test.name, guest)


async def check(phone, result, colour, locale):
    """What everybody at the door has to see; and a picture for whoever looks at pictures."""
    page = phone.page
    assert await page.get_attribute("#verdict", "data-colour") == colour
    assert await page.get_attribute("#shape use", "href") == f"#shape-{colour}"
    assert (await page.inner_text("#verdict-word")).strip()
    assert (await page.inner_text("#verdict-sentence")).strip()
    if result in UNLIKE_OTHERS:
        assert await violations(phone.page) == []
    if SHOTS:
        await page.wait_for_timeout(300)
        await page.screenshot(path=Path(SHOTS) / f"{result}-{locale[:2]}.png")
    assert phone.complaints == []


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("result", list(COLOURS))
async def test_each_verdict_has_its_colour_and_its_words(door, result, locale):
    phone = await door.phone(locale=locale)

    assert await scanned(door, phone, result) == result

    await check(phone, result, COLOURS[result], locale)


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("result", list(OWN))
async def test_what_the_phone_says_by_itself_has_its_colour_and_its_words(door, result, locale):
    phone, shown = await said_by_itself(door, result, locale)

    assert shown == result
    await check(phone, result, OWN[result], locale)
