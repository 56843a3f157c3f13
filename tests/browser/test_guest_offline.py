"""The guest's card in the pocket: it follows the house, and it stays when the house is silent."""

import asyncio

import pytest
import zxingcpp
from aiohttp import web

from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import PHONE, a_guests_page, picture
from tests.builders import table_id
from tests.ports import kept_port
from tests.web.guest.guest_world import guest_application, guest_worlds

KEPT = """async () => {
  const kept = [];
  for (const name of await caches.keys()) {
    for (const request of await (await caches.open(name)).keys()) kept.push(request.url);
  }
  return kept.map((url) => new URL(url).pathname).sort();
}"""
IS_KEPT = "async (path) => !!(await caches.match(path))"


FAR = 4_000_000_000_000  # an end of the link that the clock of no test machine has passed


class Served:
    """The guest's pages on a port that can fall silent and come back."""

    def __init__(self, box) -> None:
        self._box = box
        self.keeping_takes = 0.0  # seconds until a worker that keeps a file has it
        self._runner = None
        self.port = kept_port(self)

    async def start(self) -> None:
        app = guest_application(self._box)
        app.on_response_prepare.append(self._wait)
        await self._serve(app)

    async def stand_in(self, status, headers) -> None:
        """Something else answers in the box's place: a tunnel, a captive portal."""

        async def answer(_request):
            text = "<!doctype html><title>Wi-Fi</title><h1>Sign in</h1>"
            return web.Response(text=text, status=status, headers=headers, content_type="text/html")

        app = web.Application()
        app.add_routes([web.route("*", "/{path:.*}", answer)])
        await self.stop()
        await self._serve(app)

    async def _wait(self, request, _response) -> None:
        if request.path.startswith("/static/") and request.headers["Sec-Fetch-Dest"] == "empty":
            await asyncio.sleep(self.keeping_takes)

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
async def world(box, clock):
    return guest_worlds(box, clock)[0]


@browser_fixture
async def served(box):
    server = Served(box)
    await server.start()
    yield server
    await server.stop()


@browser_fixture
async def phone(browser, clock):
    """A phone by whose clock it is the evening of the tests."""
    page = await a_guests_page(browser)
    await page.clock.install(time=clock.now() / 1000)
    await page.clock.resume()
    return page


async def opened(page, served, path):
    """Open a card and wait until the phone keeps it."""
    await page.goto(served.url(path))
    await becomes(page, path, kept=True)


async def becomes(page, path, *, kept):
    """Wait until the phone keeps that card, or does not any more."""
    async with asyncio.timeout(60):
        while await page.evaluate(IS_KEPT, path) is not kept:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.05)


async def test_a_card_that_was_opened_once_opens_with_the_server_stopped(world, served, phone):
    path = world.access(await world.reserve(link_expires_at=FAR))
    await opened(phone, served, path)
    text = await phone.get_attribute("[data-pass]", "data-pass")

    await served.stop()
    await phone.reload()

    assert await phone.get_attribute("[data-pass]", "data-pass") == text
    image = await picture(phone)
    half = image.resize((image.width // 2, image.height // 2))
    assert [code.text for code in zxingcpp.read_barcodes(image)] == [text]
    assert [code.text for code in zxingcpp.read_barcodes(half)] == [text]
    assert await phone.evaluate("getComputedStyle(document.querySelector('.card')).borderRadius")


ELSE = {
    "tunnel without box": (502, {}),
    "box that starts": (503, {}),
    "tunnel without origin": (530, {}),
    "sign-in page": (200, {"ETag": '"captive"'}),
    "sign-in redirect": (302, {"Location": "/login"}),
    "another server": (404, {}),
}


@pytest.mark.parametrize(("status", "headers"), ELSE.values(), ids=ELSE.keys())
async def test_what_answers_in_the_boxs_place_hides_and_replaces_no_card(
    world, served, phone, status, headers
):
    path = world.access(await world.reserve(link_expires_at=FAR))
    await opened(phone, served, path)
    text = await phone.get_attribute("[data-pass]", "data-pass")

    await served.stand_in(status, headers)
    await phone.clock.fast_forward(6_000)  # an open card asks
    await phone.wait_for_selector("[data-offline]:not([hidden])")
    assert await phone.get_attribute("[data-pass]", "data-pass") == text
    await phone.reload()
    assert await phone.get_attribute("[data-pass]", "data-pass") == text
    await served.stop()
    await phone.reload()
    assert await phone.get_attribute("[data-pass]", "data-pass") == text

    await served.start()
    await phone.reload()
    await phone.clock.fast_forward(6_000)
    await phone.wait_for_selector("[data-offline][hidden]", state="attached")


async def test_a_first_visit_keeps_the_style_and_the_script_with_the_card(world, served, browser):
    path = world.access(await world.reserve(link_expires_at=FAR))
    for tenths in range(6):
        served.keeping_takes = tenths / 10
        page = await a_guests_page(browser)
        await opened(page, served, path)
        is_complete = """async () => {
          const files = [...document.querySelectorAll("link[href], script[src]")];
          const kept = files.map((file) => caches.match(file.href || file.src));
          return (await Promise.all(kept)).every(Boolean);
        }"""
        async with asyncio.timeout(30):
            while not await page.evaluate(is_complete):  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.05)
        await page.context.close()


async def test_in_another_language_it_opens_too(world, served, phone):
    path = world.access(await world.reserve(link_expires_at=FAR))
    await opened(phone, served, path)

    await served.stop()
    await phone.goto(served.url(f"{path}?lang=ar"))

    assert await phone.is_visible("[data-pass]")


@pytest.mark.proves("V14")
async def test_the_phone_keeps_this_card_and_its_files_and_nothing_else(world, served, phone):
    path = world.access(await world.reserve(link_expires_at=FAR))
    other = world.access(await world.reserve(slot="22:00"))
    await opened(phone, served, path)

    kept = await phone.evaluate(KEPT)

    assert [name for name in kept if not name.startswith("/static/")] == [path]
    assert other not in kept


async def test_a_card_whose_link_is_dead_goes_from_the_phone(world, served, phone):
    reservation = await world.reserve(link_expires_at=FAR)
    path = world.access(reservation)
    await opened(phone, served, path)

    await world.change(reservation, link_expires_at=1)
    await phone.goto(served.url(path))
    await becomes(phone, path, kept=False)

    assert "Ce lien n’ouvre rien" in await phone.inner_text("main")


async def test_a_kept_card_whose_evening_is_over_is_not_shown_offline(world, served, phone):
    reservation = await world.reserve(link_expires_at=FAR)
    path = world.access(reservation)
    await opened(phone, served, path)
    age = """async (path) => {
      const cache = await caches.open("venuebox-guest-live");
      const kept = await cache.match(path);
      const headers = new Headers(kept.headers);
      headers.set("Venuebox-Link-Ends", "1");
      await cache.put(path, new Response(await kept.text(), { headers }));
    }"""
    await phone.evaluate(age, path)

    await served.stop()
    with pytest.raises(Exception, match="ERR_"):
        await phone.reload()


async def test_forgetting_takes_the_cards_from_the_phone(world, served, phone):
    reservation = await world.reserve(link_expires_at=FAR)
    await opened(phone, served, world.access(reservation))
    await phone.goto(served.url(world.claim(reservation)))
    await phone.click("form button")
    await phone.click("text=Mes réservations")

    await phone.click("text=Tout oublier sur cet appareil")
    await phone.wait_for_selector("text=Rien ici pour l’instant")

    assert await phone.evaluate("caches.keys()") == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"checked_in_at": 1795287660000, "arrived": 4}, "Arrivés à"),
        ({"status": "cancelled"}, "Annulée"),
        ({"table_id": table_id("T3")}, "T3"),
    ],
)
async def test_an_open_card_follows_what_happens(world, served, phone, change, words):
    reservation = await world.reserve(link_expires_at=FAR)
    await opened(phone, served, world.access(reservation))

    await world.change(reservation, **change)
    await phone.clock.fast_forward(6_000)

    await phone.wait_for_selector(f"main :text('{words}')")
    assert await phone.is_visible("[data-pass]") is (change.get("status") != "cancelled")


async def test_nothing_is_asked_while_nobody_looks(world, served, phone):
    await opened(phone, served, world.access(await world.reserve(link_expires_at=FAR)))
    await phone.evaluate(
        """() => {
          Object.defineProperty(document, "visibilityState", { get: () => "hidden" });
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    await phone.clock.fast_forward(6_000)  # the question that was planned is not put either
    phone.addresses.clear()

    await phone.clock.fast_forward(120_000)
    await phone.evaluate("new Promise((done) => requestAnimationFrame(done))")

    assert phone.addresses == []


async def test_an_open_card_says_that_there_is_no_network_and_that_there_is_again(
    world, served, phone
):
    await opened(phone, served, world.access(await world.reserve(link_expires_at=FAR)))

    await served.stop()
    await phone.clock.fast_forward(6_000)
    await phone.wait_for_selector("[data-offline]:not([hidden])")
    await served.start()
    await phone.clock.fast_forward(6_000)

    await phone.wait_for_selector("[data-offline][hidden]", state="attached")


async def test_a_tap_fills_the_screen_with_the_code_and_another_leaves_it(world, served, phone):
    await phone.goto(served.url(world.access(await world.reserve(link_expires_at=FAR))))
    text = await phone.get_attribute("[data-pass]", "data-pass")

    await phone.click("[data-pass]")
    await phone.wait_for_selector("html[data-full]")
    box = await phone.locator("[data-pass] svg").bounding_box()
    image = await picture(phone)
    await phone.click("[data-pass]")
    await phone.wait_for_selector("html:not([data-full])")

    assert box["width"] >= 0.95 * min(PHONE)
    assert [code.text for code in zxingcpp.read_barcodes(image)] == [text]
