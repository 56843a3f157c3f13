"""The door app as a page: for everybody's eyes, installable, light, in three languages."""

from pathlib import Path

import pytest

from tests.browser.door_world import film

ROOT = Path(__file__).parents[2]
AXE = (ROOT / "web/frontend/node_modules/axe-core/axe.min.js").read_text()
FIRST_LOAD_MOST = 700_000
SHEETS = {
    "code": "#open-code", "list": "#open-list", "menu": "#open-menu", "ready": None,
}  # fmt: skip
RULES = """async () => {
  const found = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa",
    "wcag22aa", "best-practice"], resultTypes: ["violations"] });
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((n) => n.html).join(" ")}`);
}"""


async def violations(phone):
    # The page's policy lets no stranger's script in: it is run by the debugger instead.
    session = await phone.context.new_cdp_session(phone.page)
    await session.send("Runtime.evaluate", {"expression": AXE})
    await session.detach()
    return await phone.page.evaluate(RULES)


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
    assert await violations(phone) == []
    phone = await door.phone(locale=locale)

    for opener in SHEETS.values():
        if opener:
            await phone.page.click(opener)
        assert await violations(phone) == []
        assert await phone.page.evaluate("document.documentElement.scrollWidth") == 390
        await phone.page.keyboard.press("Escape")
    for colour, text in passes.items():
        await phone.scan(text)
        assert await phone.page.get_attribute("#verdict", "data-colour") == colour
        assert await violations(phone) == []
        if await phone.page.is_visible("#override"):
            await phone.page.click("#override")
            assert await violations(phone) == []
    assert phone.complaints == []


async def test_the_camera_screen_has_no_violation_either(door, tmp_path):
    phone = await door.phone(video=film(tmp_path / "wall.mjpeg", [], blank=30))

    await phone.page.click("#start")
    await phone.page.wait_for_selector("#video:not([hidden])", state="attached")

    assert await violations(phone) == []


@pytest.mark.parametrize("environment", ["door", "test_environment_door"])
async def test_the_page_is_installable_and_its_service_worker_rules_it_alone(environment, request):
    world = request.getfixturevalue(environment)
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


async def test_the_first_load_is_light_with_the_code_reader_and_keeps_no_answer_of_the_box(door):
    phone = await door.unpaired()
    session = await phone.context.new_cdp_session(phone.page)
    sizes: dict[str, float] = {}
    await session.send("Network.enable")
    session.on(
        "Network.loadingFinished",
        lambda event: sizes.update({event["requestId"]: event["encodedDataLength"]}),
    )
    await phone.open()
    await phone.page.wait_for_load_state("networkidle")
    worker = await phone.page.evaluate(
        """async () => {
          const { reader, wasm } = document.body.dataset;
          const sizes = [];
          for (const url of [reader, wasm]) {
            await (await fetch(url, { cache: "reload" })).arrayBuffer();
            const entries = performance.getEntriesByName(new URL(url, location).href);
            sizes.push(Math.max(...entries.map((entry) => entry.encodedBodySize)));
          }
          await navigator.serviceWorker.ready;
          const kept = [];
          for (const name of await caches.keys()) {
            for (const request of await (await caches.open(name)).keys()) kept.push(request.url);
          }
          return { sizes, kept };
        }"""
    )
    total = sum(sizes.values()) + sum(worker["sizes"])

    print(f"first load of the door app: {total / 1000:.0f} kB")
    assert min(worker["sizes"]) > 0
    assert total < FIRST_LOAD_MOST
    assert worker["kept"]
    assert not [url for url in worker["kept"] if "/terminal/" in url]


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
