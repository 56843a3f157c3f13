"""The guest's card in a browser: scanned, printed, and available offline."""

import asyncio

import pytest
from aiohttp import web

from tests.app.guest.guest_world import guest_application, guest_worlds
from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import DESKTOP, PHONE, a_guests_page, picture
from tests.builders import table_id
from tests.conftest import set_rules
from tests.ports import kept_port
from tests.qr_codes import qr_codes

A4 = (210, 297)
FAR = 4_000_000_000_000  # a link expiry far in the future
IS_KEPT = "async (path) => !!(await caches.match(path))"
KEPT = """async () => {
  const kept = [];
  for (const name of await caches.keys()) {
    for (const request of await (await caches.open(name)).keys()) kept.push(request.url);
  }
  return kept.map((url) => new URL(url).pathname).sort();
}"""
IS_COMPLETE = """async () => {
  const files = [...document.querySelectorAll("link[href], script[src]")];
  const kept = files.map((file) => caches.match(file.href || file.src));
  return (await Promise.all(kept)).every(Boolean);
}"""
WATCH = """
  window.kept = [];
  WakeLock.prototype.request = async (kind) => { kept.push(kind); };
  navigator.share = async (what) => { window.shared = what; };
"""
COPIES = """
  navigator.share = undefined;
  navigator.clipboard.writeText = async (text) => { window.copied = text; };
"""
TRANSFERRED = "performance.getEntries().reduce((sum, e) => sum + (e.transferSize || 0), 0)"
LOADED = "performance.getEntriesByType('resource').map((e) => [e.name, e.initiatorType])"
ELSE = {
    "tunnel without box": (502, {}),
    "sign-in page": (200, {"ETag": '"captive"'}),
    "sign-in redirect": (302, {"Location": "/login"}),
}


@browser_fixture(autouse=True)
async def booking_page(box):
    await set_rules(box.live, booking_page=1)


@browser_fixture
async def world(box, clock):
    return guest_worlds(box, clock)[0]


@browser_fixture
async def look(browser, server):
    """Open a path of the box in a new browser profile."""

    async def opened(path, size=PHONE, locale="fr-MA", script=None, **options):
        page = await a_guests_page(browser, size, locale, **options)
        if script:
            await page.add_init_script(script)
        await page.goto(str(server.make_url(path)))
        return page

    return opened


@pytest.mark.parametrize(
    ("size", "scheme", "locale"),
    [(PHONE, "light", "fr-MA"), (PHONE, "dark", "ar-MA"), (DESKTOP, "dark", "fr-MA")],
)
async def test_the_pass_can_be_scanned_from_the_screen_at_full_and_half_size(
    world, look, size, scheme, locale
):
    path = world.access(await world.reserve())
    page = await look(path, size, locale, color_scheme=scheme)

    text = await page.get_attribute("[data-pass]", "data-pass")
    box = await page.locator("[data-pass]").bounding_box()
    image = await picture(page)
    module = box["width"] / 49
    corner = image.getpixel((round(box["x"] + 4.5 * module), round(box["y"] + 4.5 * module)))
    quiet = image.getpixel((round(box["x"] + 2 * module), round(box["y"] + box["height"] / 2)))

    assert (
        qr_codes(image) == qr_codes(image.resize((image.width // 2, image.height // 2))) == [text]
    )
    assert (quiet, corner) == (255, 0)  # black on white in dark mode too
    assert box["width"] >= 0.6 * PHONE[0]
    assert box["y"] + box["height"] < size[1]


async def test_a_tap_shows_the_code_full_screen_and_another_tap_closes_it(world, look):
    page = await look(world.access(await world.reserve()))
    text = await page.get_attribute("[data-pass]", "data-pass")

    await page.click("[data-pass]")
    await page.wait_for_selector("html[data-full]")
    box = await page.locator("[data-pass] svg").bounding_box()
    image = await picture(page)
    await page.click("[data-pass]")
    await page.wait_for_selector("html:not([data-full])")

    assert box["width"] >= 0.95 * min(PHONE)
    assert qr_codes(image) == [text]


@pytest.mark.parametrize(("status", "locale"), [("confirmed", "fr-MA"), ("requested", "ar-MA")])
async def test_the_printed_card_fits_a_quarter_of_a4(world, look, status, locale):
    page = await look(world.access(await world.reserve(status=status)), locale=locale)
    await page.emulate_media(media="print")
    margin, millimetre = 8, 96 / 25.4
    width = round((A4[0] - 2 * margin) * millimetre)
    await page.set_viewport_size({"width": width, "height": 1000})

    card = await page.locator(".card").bounding_box()
    qr = await page.locator("[data-pass]").bounding_box()

    assert card["y"] == 0
    assert margin + card["width"] / millimetre <= A4[0] / 2
    assert margin + card["height"] / millimetre <= A4[1] / 2
    assert qr["width"] / millimetre >= 50
    assert not await page.locator(".actions").is_visible()


async def test_every_guest_page_is_small_needs_one_round_trip_and_breaks_no_security_policy(
    world, look, server
):
    reservation = await world.reserve(date="2026-11-22")

    for path in (world.access(reservation), world.claim(reservation), "/book", "/me"):
        page = await look(path)
        await page.wait_for_load_state("networkidle")
        loaded = dict(await page.evaluate(LOADED))
        assert 0 < await page.evaluate(TRANSFERRED) < 60_000
        assert [name for name, kind in loaded.items() if kind == "css"] == []
        here = str(server.make_url("/"))
        assert [url for url in page.addresses if not url.startswith(here)] == []
        assert page.complaints == []


async def test_a_claim_link_opens_the_card_which_works_from_right_to_left_and_without_javascript(
    world, look
):
    reservation = await world.reserve()
    page = await look(world.claim(reservation), locale="en-GB")
    await page.click("form button")
    await page.click("text=See my pass")
    text = await page.get_attribute("[data-pass]", "data-pass")
    await page.click("text=العربية")
    assert await page.get_attribute("html", "dir") == "rtl"

    plain = await look(world.access(reservation), java_script_enabled=False)
    assert qr_codes(await picture(plain)) == [text]
    share = plain.locator("[data-share]")
    assert (await share.get_attribute("href")).startswith("mailto:?subject=")


async def test_the_screen_stays_awake_and_the_card_can_be_shared_or_its_link_copied(world, look):
    path = world.access(await world.reserve())
    page, dead = await look(path, script=WATCH), await look("/access/x", script=WATCH)
    assert await page.evaluate("kept") == ["screen"]
    assert await dead.evaluate("kept") == []
    await page.click("[data-share]")
    assert (await page.evaluate("shared"))["url"] == f"https://box.example{path}"

    page = await look(path, script=COPIES)
    await page.click("[data-share]")
    assert (await page.evaluate("copied")).endswith(f"https://box.example{path}")


class Served:
    """The guest pages on a port that can go down and come back."""

    def __init__(self, box) -> None:
        self._box = box
        self._runner = None
        self.port = kept_port(self)

    async def start(self) -> None:
        await self._serve(guest_application(self._box))

    async def stand_in(self, status, headers) -> None:
        """Answer in place of the box, like a tunnel or a captive portal."""

        async def answer(_request):
            text = "<!doctype html><title>Wi-Fi</title><h1>Sign in</h1>"
            return web.Response(text=text, status=status, headers=headers, content_type="text/html")

        app = web.Application()
        app.add_routes([web.route("*", "/{path:.*}", answer)])
        await self.stop()
        await self._serve(app)

    async def _serve(self, app) -> None:
        self._runner = web.AppRunner(app, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@browser_fixture
async def served(box):
    server = Served(box)
    await server.start()
    yield server
    await server.stop()


@browser_fixture
async def phone(browser, clock):
    """A phone whose clock shows the evening of the tests."""
    page = await a_guests_page(browser)
    await page.clock.install(time=clock.now() / 1000)
    await page.clock.resume()
    return page


async def opened(page, served, path):
    """Open a card and wait until the phone has cached it and its files."""
    await page.goto(served.url(path))
    await becomes(page, IS_KEPT, path)
    await becomes(page, IS_COMPLETE)


async def becomes(page, script, argument=None, *, value=True):
    async with asyncio.timeout(60):
        while await page.evaluate(script, argument) is not value:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("status", "headers"), ELSE.values(), ids=ELSE.keys())
async def test_a_response_from_a_captive_portal_or_tunnel_does_not_replace_the_cached_card(
    world, served, phone, status, headers
):
    path = world.access(await world.reserve(link_expires_at=FAR))
    await opened(phone, served, path)
    text = await phone.get_attribute("[data-pass]", "data-pass")

    await served.stand_in(status, headers)
    await phone.clock.fast_forward(6_000)  # an open card asks for updates
    await phone.wait_for_selector("[data-offline]:not([hidden])")
    await phone.reload()
    assert await phone.get_attribute("[data-pass]", "data-pass") == text
    await served.stop()
    await phone.goto(served.url(f"{path}?lang=ar"))
    assert qr_codes(await picture(phone)) == [text]

    await served.start()
    await phone.reload()
    await phone.clock.fast_forward(6_000)
    await phone.wait_for_selector("[data-offline][hidden]", state="attached")


async def test_the_phone_caches_only_this_card_and_its_files(world, served, phone):
    path = world.access(await world.reserve(link_expires_at=FAR))
    other = world.access(await world.reserve(slot="22:00"))
    await opened(phone, served, path)

    kept = await phone.evaluate(KEPT)

    assert [name for name in kept if not name.startswith("/static/")] == [path]
    assert other not in kept


async def test_a_card_with_an_expired_link_is_deleted_from_the_phone(world, served, phone):
    reservation = await world.reserve(link_expires_at=FAR)
    path = world.access(reservation)
    await opened(phone, served, path)

    await world.change(reservation, link_expires_at=1)
    await phone.goto(served.url(path))
    await becomes(phone, IS_KEPT, path, value=False)


async def test_forgetting_the_device_deletes_its_cached_cards(world, served, phone):
    reservation = await world.reserve(link_expires_at=FAR)
    await opened(phone, served, world.access(reservation))
    await phone.goto(served.url(world.claim(reservation)))
    await phone.click("form button")
    await phone.wait_for_selector("main a.button[href*='/access/']")
    await phone.goto(served.url("/me"))
    await phone.click("[data-forget] button")
    await becomes(phone, "async () => (await caches.keys()).length === 0")


@pytest.mark.parametrize(
    ("change", "words"),
    [({"status": "cancelled"}, "Annulée"), ({"table_id": table_id("T3")}, "T3")],
)
async def test_an_open_card_updates_when_the_reservation_changes(
    world, served, phone, change, words
):
    reservation = await world.reserve(link_expires_at=FAR)
    await opened(phone, served, world.access(reservation))

    await world.change(reservation, **change)
    await phone.clock.fast_forward(6_000)

    await phone.wait_for_selector(f"main :text('{words}')")
    assert await phone.is_visible("[data-pass]") is (change.get("status") != "cancelled")
