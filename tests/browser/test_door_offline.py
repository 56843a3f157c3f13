"""The box is unreachable: the phone decides offline and loses no decision."""

import json

from appliance.door.guest_pass import rotate_signing_key
from tests.browser.phones import ONLINE
from tests.waiting import until

# Fail the next `times` writes into this store, like a full phone.
_FULL = """({ store, times }) => {
  const put = IDBObjectStore.prototype.put;
  let left = times;
  IDBObjectStore.prototype.put = function (...given) {
    if (this.name === store && left-- > 0) throw new DOMException("full", "QuotaExceededError");
    return put.apply(this, given);
  };
}"""
_ALWAYS = 1_000_000
_AGAIN_MS = 3100  # after 3 s the same code is a new scan


async def test_a_reload_or_a_crash_of_the_browser_loses_no_guests_and_no_scans(door, tmp_path):
    guest, second = await door.guest(), await door.guest(table="T2")
    text, other = await door.pass_of(guest), await door.pass_of(second)
    profile = tmp_path / "phone"
    phone = await door.phone(profile=profile)
    await phone.context.close()  # closing makes Chromium store its cookies now
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


async def test_a_typed_name_always_asks_for_a_choice_and_the_chosen_guest_is_counted(door):
    guest = await door.guest(guests=4, customer_name="Benoit Martin")
    await door.guest(table="T2", customer_name="Sara Ben Ali")
    phone = await door.phone()
    await phone.lose_box()

    assert await phone.type_code("ben") == ("ambiguous", "amber")
    await phone.page.click("#picks button:has-text('Benoit')")
    await phone.page.wait_for_selector("#verdict[data-result=checked_in]")
    await phone.find_box()
    await phone.is_synced()

    assert (await door.now_of(guest)).arrived == 4
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(0,)]


async def test_a_pass_missing_from_the_list_can_be_admitted_with_a_reason_and_is_counted_once(door):
    phone = await door.phone()
    await phone.lose_box()
    guest = await door.guest(guests=3)
    text = await door.pass_of(guest)

    assert await phone.scan(text) == "unlisted"
    assert "0 / 3" in await phone.page.inner_text("#verdict-facts")
    await phone.let_in_anyway()
    await phone.page.wait_for_timeout(3100)
    assert await phone.scan(text) == "already_checked_in"
    await phone.find_box()
    await phone.is_synced()

    assert (await door.now_of(guest)).arrived == 3
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(0,)]
    assert phone.complaints == []


async def test_a_phone_without_storage_space_admits_with_a_warning_and_uploads_from_memory(door):
    guest, second = await door.guest(), await door.guest(table="T2")
    text, other = await door.pass_of(guest), await door.pass_of(second)
    phone = await door.phone(locale="en-GB")
    await door.stop()
    await phone.page.evaluate(_FULL, {"store": "queue", "times": _ALWAYS})

    assert await phone.scan(text) == "checked_in"
    await phone.page.wait_for_timeout(_AGAIN_MS)
    assert await phone.scan(text) == "already_checked_in"
    assert await phone.scan(other) == "checked_in"
    await phone.undo()
    await door.start()
    await phone.page.wait_for_selector("body[data-box=up]", timeout=30_000)
    await phone.until("() => !document.getElementById('state').textContent.includes('to send')")

    assert (await door.now_of(guest)).arrived == 2
    assert (await door.now_of(second)).arrived == 0
    assert phone.complaints == []


async def test_an_error_of_the_phone_is_shown_and_the_next_guest_is_decided(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone(locale="en-GB")
    await door.stop()
    await phone.page.evaluate("dispatchEvent(new Event('offline'))")
    await phone.is_down()
    await phone.page.evaluate(
        """() => {
          const request = LockManager.prototype.request;
          LockManager.prototype.request = function () {
            LockManager.prototype.request = request;
            throw new DOMException("gone", "InvalidStateError");
          };
        }"""
    )

    assert await phone.scan(text) == "error"
    await phone.page.wait_for_timeout(_AGAIN_MS)
    assert await phone.scan(text) == "checked_in"


async def test_a_new_signing_key_is_known_before_the_box_becomes_unreachable(door):
    phone = await door.phone()
    await door.environment.database.write(rotate_signing_key, door.environment.keyring)
    text = await door.pass_of(await door.guest())

    async def has_the_guest():
        return len(json.loads((await phone.kept("snapshot"))["payload"])["passes"]) == 1

    await until(has_the_guest)
    await door.stop()

    assert await phone.scan(text) == "checked_in"


async def test_a_phone_whose_clock_was_changed_corrects_its_offset(door):
    door.clock.set("2026-11-22T02:30:00Z")
    text = await door.pass_of(await door.guest())
    phone = await door.phone()
    before = await phone.kept("ahead")
    await phone.page.evaluate("{const b = Date.now; Date.now = () => b() + 4 * 3600e3}")
    await phone.page.evaluate(ONLINE)

    async def has_learnt():
        return await phone.kept("ahead") < before - 3 * 3600e3

    await until(has_learnt)
    await phone.lose_box()

    assert await phone.scan(text) == "checked_in"
