"""A browser that keeps nothing any more, for once or for good: no guest waits because of it."""

from appliance.actions.offer_pairing import offer_pairing
from tests.browser.phones import eventually

# What a full phone answers to `times` writes into this store.
_FULL = """({ store, times }) => {
  const put = IDBObjectStore.prototype.put;
  let left = times;
  IDBObjectStore.prototype.put = function (...given) {
    if (this.name === store && left-- > 0) throw new DOMException("full", "QuotaExceededError");
    return put.apply(this, given);
  };
}"""
_UNREADABLE = """times => {
  const get = IDBObjectStore.prototype.get;
  let left = times;
  IDBObjectStore.prototype.get = function (key) {
    if (left-- > 0) throw new DOMException("lost", "UnknownError");
    return get.call(this, key);
  };
}"""
_CLOSED = """indexedDB.open = () => {
  const request = new EventTarget();
  setTimeout(() => request.dispatchEvent(new Event("error")), 1);
  request.error = new DOMException("lost", "UnknownError");
  return Object.setPrototypeOf(request, IDBOpenDBRequest.prototype);
}"""
_ALWAYS = 1_000_000
_AGAIN_MS = 3100  # the same code counts again after three seconds


async def test_a_write_that_failed_once_is_done_again_and_nobody_notices(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    await door.stop()
    await phone.page.evaluate(_FULL, {"store": "queue", "times": 1})

    assert await phone.scan(text) == "checked_in"
    await door.start()
    await phone.is_synced()

    assert (await door.now_of(guest)).arrived == 2
    assert phone.complaints == []


async def test_a_full_phone_lets_in_warns_and_tells_the_box_from_memory(door):
    guest, second = await door.guest(), await door.guest(table="T2")
    text, other = await door.pass_of(guest), await door.pass_of(second)
    phone = await door.phone(locale="en-GB")
    await door.stop()
    await phone.page.evaluate(_FULL, {"store": "queue", "times": _ALWAYS})

    assert await phone.scan(text) == "checked_in"
    assert "leave this page open" in await phone.page.inner_text("#verdict-sentence")
    await phone.page.wait_for_timeout(_AGAIN_MS)
    assert await phone.scan(text) == "already_checked_in"
    assert await phone.scan(other) == "checked_in"
    await phone.page.click("#undo")
    await phone.until("() => document.getElementById('verdict').dataset.result === 'undone'")
    await door.start()
    await phone.page.wait_for_selector("body[data-box=up]", timeout=30_000)
    await phone.until("() => !document.getElementById('state').textContent.includes('to send')")

    assert (await door.now_of(guest)).arrived == 2
    assert (await door.now_of(second)).arrived == 0
    assert phone.complaints == []


async def test_a_phone_that_cannot_open_its_storage_scans_while_the_box_is_there(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    await phone.page.add_init_script(_CLOSED)

    await phone.page.reload()
    await phone.page.wait_for_selector("body[data-box=up]", timeout=30_000)
    assert await phone.scan(text) == "checked_in"
    await phone.until("() => document.getElementById('list-age').textContent.includes(':')")
    await door.stop()
    await phone.page.wait_for_timeout(_AGAIN_MS)

    assert await phone.scan(text) == "already_checked_in"
    assert phone.complaints == []


async def test_a_phone_that_lost_its_storage_for_a_moment_finds_the_box_again(door):
    phone = await door.phone()
    await door.stop()
    await phone.page.evaluate("dispatchEvent(new Event('offline'))")
    await phone.is_down()
    await phone.page.evaluate(_UNREADABLE, 4)

    await door.start()

    await phone.page.wait_for_selector("body[data-box=up]", timeout=30_000)


async def test_a_fault_of_the_phone_is_told_and_the_next_guest_is_decided(door):
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
    assert "this phone" in await phone.page.inner_text("#verdict-sentence")
    await phone.page.wait_for_timeout(_AGAIN_MS)
    assert await phone.scan(text) == "checked_in"


async def test_a_paired_phone_asks_its_browser_not_to_throw_anything_out(door):
    phone = await door.phone()
    await phone.page.add_init_script(
        """StorageManager.prototype.persist = async () => (window.persisted = true);"""
    )

    await phone.page.reload()

    await phone.until("() => window.persisted === true")


async def test_scans_that_are_in_memory_alone_outlast_a_lost_pairing(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    await door.stop()
    await phone.page.evaluate(_FULL, {"store": "queue", "times": _ALWAYS})
    assert await phone.scan(text) == "checked_in"
    await phone.context.clear_cookies()

    await door.start()
    await phone.page.wait_for_selector("#pairing:not([hidden])", timeout=60_000)
    offered = await door.environment.database.write(offer_pairing, "Porte 1", "override")
    await phone.page.evaluate("secret => { location.hash = `pair=${secret}`; }", offered.secret)
    await phone.page.wait_for_selector("#pair-linked:not([hidden])")
    await phone.page.click("#pair-form button[type=submit]")

    async def is_counted():
        return (await door.now_of(guest)).arrived == 2

    await eventually(is_counted)
