"""The door app as a page: for everybody's eyes, installable, light, in three languages."""

import pytest
from aiohttp import ClientSession

from tests.browser.accessibility import violations
from tests.browser.films import film

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


@pytest.mark.proves("V3")
@pytest.mark.parametrize("locale", ["fr-MA", "en-GB", "ar-MA"])
async def test_axe_finds_nothing_on_any_screen_and_nothing_is_wider_than_the_phone(door, locale):
    passes = {
        "green": await door.pass_of(await door.guest(guests=4, notes="VIP: gâteau à 23 h")),
        "amber": await door.pass_of(await door.guest(table="T2", status="pending")),
        "red": await door.pass_of(await door.guest(table="T3", status="cancelled")),
    }
    phone = await door.unpaired(locale=locale)
    await phone.open()
    await phone.page.wait_for_selector("#pairing:not([hidden])")
    assert await violations(phone.page) == []
    phone = await door.phone(locale=locale)

    for opener in SHEETS.values():
        if opener:
            await phone.page.click(opener)
        assert await violations(phone.page) == []
        assert await phone.page.evaluate("document.documentElement.scrollWidth") == 390
        await phone.page.keyboard.press("Escape")
    for colour, text in passes.items():
        await phone.scan(text)
        assert await phone.page.get_attribute("#verdict", "data-colour") == colour
        assert await violations(phone.page) == []
        if await phone.page.is_visible("#override"):
            await phone.page.click("#override")
            assert await violations(phone.page) == []
            await phone.page.click("#next")  # nobody else comes while a reason is written
    assert phone.complaints == []


async def test_the_camera_screen_has_no_violation_either(door, tmp_path):
    phone = await door.phone(video=film(tmp_path / "wall.mjpeg", [], blank=30))

    await phone.page.click("#start")
    await phone.page.wait_for_selector("#video:not([hidden])", state="attached")

    assert await violations(phone.page) == []


async def test_the_page_is_installable_and_its_service_worker_rules_it_alone(door):
    await check_installable(door)


async def test_the_page_of_the_test_environment_is_one_of_its_own(test_environment_door):
    phone = await check_installable(test_environment_door)

    assert "TEST" in await phone.page.inner_text(".test")


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
    return phone


async def test_the_first_load_is_light_with_the_code_reader_and_no_answer_of_the_box_is_kept(door):
    phone = await door.phone()
    asked = []
    phone.page.on("request", lambda request: asked.append(request.url))
    await phone.page.reload()
    await phone.is_ready()

    kept = await phone.page.evaluate(KEPT)
    sizes = {url: await transferred(url) for url in {*kept, *asked} if "/terminal/" not in url}

    print(f"first load of the door app: {sum(sizes.values()) / 1000:.0f} kB", sizes)
    assert any(url.partition("?")[0].endswith(".wasm") for url in sizes)
    assert any("/terminal/" in url for url in asked)
    assert [url for url in kept if "/terminal/" in url] == []
    assert sum(sizes.values()) < FIRST_LOAD_MOST


async def transferred(url):
    """What travels: compressed as for a browser without https, which takes no Brotli."""
    headers = {"Accept-Encoding": "gzip, deflate"}
    async with (
        ClientSession(auto_decompress=False) as session,
        session.get(url, headers=headers) as response,
    ):
        assert response.status == 200
        return len(await response.read())


async def test_another_language_is_one_tap_away_and_turns_the_page_around(door):
    phone = await door.phone()

    await phone.page.click("#open-menu")
    await phone.page.click("#menu-sheet [lang=ar]")

    assert await phone.page.get_attribute("html", "dir") == "rtl"
    assert await phone.page.inner_text("#menu-sheet h2") == "الإعدادات"
    await phone.page.reload()
    await phone.is_ready()
    assert await phone.page.get_attribute("html", "lang") == "ar"


async def test_every_target_is_large_enough_for_a_glove(door):
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
