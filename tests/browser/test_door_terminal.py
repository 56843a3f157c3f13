"""A phone as a terminal: pairing, roles, installation, and deletion when it is revoked."""

from aiohttp import ClientSession

from appliance.door.terminals import (
    offer_pairing,
    revoke_terminal,
)
from tests.waiting import until

LEFT = """async () => ({
  databases: (await indexedDB.databases()).filter((one) => one.name.startsWith("venuebox")).length,
  caches: (await caches.keys()).length,
})"""
FIRST_LOAD_MOST = 700_000
SHEETS = {
    "code": "#open-code", "list": "#open-list", "menu": "#open-menu", "ready": None,
}  # fmt: skip
KEPT = """async () => {
  const kept = [];
  for (const name of await caches.keys()) {
    for (const request of await (await caches.open(name)).keys()) kept.push(request.url);
  }
  return kept;
}"""


async def is_clean(phone):
    return await phone.page.evaluate(LEFT) == {"databases": 0, "caches": 0}


async def test_a_pairing_link_works_once_and_its_secret_is_stored_nowhere(door):
    secret, _ = await door.environment.database.write(offer_pairing, "Porte 1", "override")
    phone = await door.unpaired()
    asked = []
    phone.page.on("request", lambda request: asked.append(request.url))

    await phone.pair(secret)

    assert secret not in phone.page.url
    assert not any(secret in url for url in asked)
    assert await phone.page.evaluate("document.cookie") == ""
    assert await phone.page.inner_text("#venue") == "Riad Atlas"
    assert phone.complaints == []


async def test_a_revoked_phone_deletes_its_data_and_asks_to_be_paired(door):
    await door.guest(customer_name="Salma Idrissi")
    phone = await door.phone()
    ((terminal_id,),) = await door.rows("SELECT id FROM terminal")
    await phone.page.click("#open-list")
    await phone.page.wait_for_selector(".guest >> text=Salma")

    await door.environment.database.write(revoke_terminal, terminal_id)

    await phone.page.wait_for_selector("#pairing:not([hidden])", timeout=60_000)
    assert "Salma" not in await phone.page.content()
    await until(lambda: is_clean(phone))


async def test_a_phone_that_is_offline_for_a_minute_suggests_checking_the_certificate(door):
    phone = await door.phone()
    page = phone.page
    await phone.lose_box()
    await page.click("#open-menu")
    assert await page.is_hidden("#trust-hint")

    await page.evaluate("const { now } = Date; Date.now = () => now() + 61_000")
    await page.evaluate("dispatchEvent(new Event('offline'))")

    await page.wait_for_selector("#trust-hint:not([hidden])")
    await phone.find_box()
    await page.wait_for_selector("#trust-hint[hidden]", state="attached")


async def test_unpairing_names_what_is_lost_asks_once_and_notifies_the_box(door):
    text = await door.pass_of(await door.guest())
    phone = await door.phone()
    page = phone.page
    await phone.lose_box()
    await phone.scan(text)
    await page.click("#next")
    await page.click("#open-menu")
    await page.click("#unpair")
    await page.wait_for_selector("#unpair-unsent:has-text('1')")
    await page.click("#menu-sheet [data-close]")
    await phone.find_box()
    await phone.is_synced()

    await page.click("#open-menu")
    await page.click("#unpair")
    assert await page.is_hidden("#unpair-unsent")
    await page.click("#unpair-yes")

    await page.wait_for_selector("#pairing:not([hidden])")
    await until(lambda: is_clean(phone))
    assert await door.rows("SELECT count(*) FROM terminal WHERE revoked_at IS NULL") == [(0,)]


async def test_a_phone_with_the_scan_role_shows_no_list_and_no_override(door):
    guest = await door.guest(status="pending")
    phone = await door.phone(role="scan")

    assert await phone.scan(await door.pass_of(guest)) == "payment_due"
    assert not await phone.page.is_visible("#override")
    await phone.page.click("#next")

    assert not await phone.page.is_visible("#open-list")


async def test_the_door_app_can_be_installed_and_its_service_worker_controls_only_the_app(door):
    await check_installable(door)


async def check_installable(world):
    phone = await world.phone()
    session = await phone.context.new_cdp_session(phone.page)

    await phone.page.reload()
    await phone.is_ready()
    manifest = await session.send("Page.getAppManifest")
    errors = await session.send("Page.getInstallabilityErrors")

    assert manifest["errors"] == []
    assert manifest["url"].endswith("/door/manifest.webmanifest")
    assert [
        e["errorId"] for e in errors["installabilityErrors"] if e["errorId"] != "in-incognito"
    ] == []
    scope = await phone.page.evaluate("navigator.serviceWorker.ready.then((r) => r.scope)")
    assert scope == f"{world.url}/door"
    assert await phone.page.evaluate("navigator.serviceWorker.controller !== null")


async def test_the_first_load_of_the_door_app_is_small_and_no_answer_of_the_box_is_cached(door):
    phone = await door.phone()
    asked = []
    phone.page.on("request", lambda request: asked.append(request.url))
    await phone.page.reload()
    await phone.is_ready()

    kept = await phone.page.evaluate(KEPT)
    files = {url for url in {*kept, *asked} if "/terminal/" not in url and "/live?" not in url}
    sizes = {url: await transferred(url) for url in files}

    print(f"first load of the door app: {sum(sizes.values()) / 1000:.0f} kB", sizes)
    assert any(url.partition("?")[0].endswith(".wasm") for url in sizes)
    assert any("/terminal/" in url for url in asked)
    assert [url for url in kept if "/terminal/" in url] == []
    assert sum(sizes.values()) < FIRST_LOAD_MOST


async def transferred(url):
    """Return the bytes sent: gzip, because browsers accept no Brotli without https."""
    headers = {"Accept-Encoding": "gzip, deflate"}
    async with (
        ClientSession(auto_decompress=False) as session,
        session.get(url, headers=headers) as response,
    ):
        assert response.status == 200
        return len(await response.read())


async def test_the_language_can_be_changed_with_one_tap_and_arabic_runs_from_right_to_left(door):
    phone = await door.phone()

    await phone.page.click("#open-menu")
    await phone.page.click("#menu-sheet [lang=ar]")

    assert await phone.page.get_attribute("html", "dir") == "rtl"
    await phone.page.reload()
    await phone.is_ready()
    assert await phone.page.get_attribute("html", "lang") == "ar"


async def test_every_control_is_large_enough_for_a_gloved_finger(door):
    phone = await door.phone()
    small = """() => [...document.querySelectorAll("button, label.quiet-button, .switch")]
      .map((one) => [one, one.getBoundingClientRect()])
      .filter(([, box]) => box.width > 0 && (box.height < 63.5 || box.width < 44))
      .map(([one]) => one.outerHTML.slice(0, 80))"""

    for opener in SHEETS.values():
        if opener:
            await phone.page.click(opener)
        assert await phone.page.evaluate(small) == []
        await phone.page.keyboard.press("Escape")
    await phone.scan(await door.pass_of(await door.guest(guests=4)))
    assert await phone.page.evaluate(small) == []
