"""The thread to the box over a long evening: what changes without a word is learned too."""

import asyncio

from appliance.actions.amend_reservation import reissue_pass
from appliance.actions.offer_pairing import offer_pairing
from appliance.actions.rotate_signing_key import rotate_signing_key
from tests.browser.phones import eventually

_OFFLINE = "dispatchEvent(new Event('offline'))"
_ONLINE = "dispatchEvent(new Event('online'))"
_COUNTER = "want => document.getElementById('counter-said').textContent.includes(want)"
_READ = """
  const open = indexedDB.open("venuebox-door-live");
  const database = await new Promise((done) => (open.onsuccess = () => done(open.result)));
  const request = database.transaction("kept").objectStore("kept").get("snapshot");
  const { payload } = await new Promise((done) =>
    (request.onsuccess = () => done(request.result)));
  database.close();
"""
_KEPT = f"async (want) => {{ {_READ} return payload === want; }}"
_CACHES = "caches.keys().then(keys => keys.length)"


async def is_apart(phone):
    """Out of the box's reach, while the box goes on."""
    await phone.page.route("**/terminal/v1/**", lambda route: route.abort())
    await phone.page.evaluate(_OFFLINE)
    await phone.is_down()


async def test_a_phone_that_stays_connected_goes_over_to_the_next_evening(door):
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


async def test_a_new_signing_key_is_learned_before_the_box_is_gone(door):
    phone = await door.phone()
    await door.environment.database.write(rotate_signing_key, door.environment.keyring)
    text = await door.pass_of(await door.guest())
    await phone.until(f"async () => {{ {_READ} return JSON.parse(payload).passes.length === 1; }}")
    await door.stop()

    assert await phone.scan(text) == "checked_in"


async def test_a_list_that_nobody_known_has_signed_is_refused_and_said(door):
    phone = await door.phone(locale="en-GB")

    async def forge(route):
        answer = await route.fetch()
        await route.fulfill(response=answer, json={**await answer.json(), "kid": 200})

    await phone.page.route("**/terminal/v1/snapshot", forge)
    await door.guest()

    await phone.page.wait_for_selector("#alone-text:has-text('not signed')")
    await phone.page.unroute("**/terminal/v1/snapshot")
    await phone.page.evaluate(_ONLINE)
    await phone.page.wait_for_selector("#alone-text", state="hidden")


async def test_a_phone_whose_own_clock_was_set_learns_how_far_it_is_off(door):
    door.clock.set("2026-11-22T02:30:00Z")
    text = await door.pass_of(await door.guest())
    phone = await door.phone()
    await phone.page.evaluate("{const b = Date.now; Date.now = () => b() + 4 * 3600e3}")
    async with phone.page.expect_response(lambda answer: answer.url.endswith("/me")) as answer:
        await door.guest(table="T2")
    await (await answer.value).finished()
    await phone.page.wait_for_timeout(500)
    await is_apart(phone)

    assert await phone.scan(text) == "checked_in"


async def test_a_phone_paired_again_keeps_the_app_and_has_one_link(door):
    phone = await door.phone()
    for _ in range(2):
        await phone.page.click("#open-menu")
        await phone.page.click("#unpair")
        await phone.page.click("#unpair-yes")
        await phone.page.wait_for_selector("#pairing:not([hidden])")
        offered = await door.environment.database.write(offer_pairing, "Porte 1", "override")
        await phone.page.evaluate("secret => { location.hash = `pair=${secret}`; }", offered.secret)
        await phone.page.wait_for_selector("#pair-linked:not([hidden])")
        await phone.page.click("#pair-form button[type=submit]")
        await phone.page.wait_for_selector("body[data-box=up]")
    await phone.until(_CACHES)
    asked = []
    phone.page.on("request", lambda one: asked.append(one.url) if "/me" in one.url else None)
    await phone.page.evaluate(_ONLINE)
    await eventually(lambda: told(asked))
    await asyncio.sleep(1)
    assert len(asked) == 1

    await door.stop()
    await phone.page.reload()
    await phone.page.wait_for_selector("#bar:not([hidden])")


async def told(asked):
    return bool(asked)


async def test_a_code_of_any_length_and_a_scan_that_the_box_refuses_hold_up_nothing(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    await is_apart(phone)
    assert await phone.scan("X" * 3000) == "unknown_code"
    poison = """async () => {
      const open = indexedDB.open("venuebox-door-live");
      const database = await new Promise((done) => (open.onsuccess = () => done(open.result)));
      const store = database.transaction("queue", "readwrite").objectStore("queue");
      store.put({ scanId: "not one of ours!", code: "x", at: new Date().toISOString(),
        shown: "checked_in", guestId: "x", admitted: 2, reached: false });
      await new Promise((done) => (store.transaction.oncomplete = done));
      database.close();
    }"""
    await phone.page.evaluate(poison)
    assert await phone.scan(text) == "checked_in"
    await phone.page.unroute("**/terminal/v1/**")
    await phone.page.evaluate(_ONLINE)

    await phone.is_synced()
    await phone.page.wait_for_selector("#conflict[open]")

    assert (await door.now_of(guest)).arrived == 2
    assert await door.rows("SELECT count(*) FROM scan") == [(2,)]


async def test_a_second_tab_leaves_the_first_a_list_and_counts_that_fit(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    tab = await phone.context.new_page()
    await tab.goto(f"{door.url}/door")
    await tab.wait_for_selector("body[data-box=up]")
    other = await door.phone("Porte 2")
    assert await other.scan(text) == "checked_in"
    for page in (phone.page, tab):
        await page.wait_for_function(_COUNTER, arg="2")
    await phone.page.bring_to_front()
    await phone.page.route("**/terminal/v1/**", lambda route: route.abort())
    async with tab.expect_response(lambda answer: answer.url.endswith("/snapshot")) as answer:
        await tab.evaluate(_ONLINE)
    await phone.until(_KEPT, (await (await answer.value).json())["payload"])
    await tab.wait_for_timeout(500)
    await phone.page.evaluate(_OFFLINE)
    await phone.is_down()

    assert await phone.scan(text) == "already_checked_in"


async def test_a_pass_that_was_replaced_is_refused_without_the_box_too(door):
    guest = await door.guest()
    old = await door.pass_of(guest)
    phone = await door.phone()

    async with phone.page.expect_response(lambda answer: answer.url.endswith("/snapshot")) as asked:
        await door.environment.database.write(
            reissue_pass, guest.id, guest.version, actor="staff:yasmine"
        )
    await phone.until(_KEPT, (await (await asked.value).json())["payload"])
    await is_apart(phone)

    assert await phone.scan(old) == "revoked"
    assert await phone.scan(await door.pass_of(await door.now_of(guest))) == "checked_in"
