"""The guest's pages as a real browser shows them."""

import pytest
import zxingcpp
from PIL import Image

from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import DESKTOP, PHONE, a_guests_page, picture
from tests.web.guest.guest_world import guest_worlds

SMALL_PHONE = (320, 568)
A4 = (210, 297)


@browser_fixture
async def world(box, clock):
    return guest_worlds(box, clock)[0]


@browser_fixture
async def look(browser, server):
    """Opens a path of the box in a fresh browser profile."""

    async def opened(path, size=PHONE, locale="fr-MA", script=None, **options):
        page = await a_guests_page(browser, size, locale, **options)
        if script:
            await page.add_init_script(script)
        await page.goto(str(server.make_url(path)))
        return page

    return opened


def codes(image: Image.Image) -> list[str]:
    return [code.text for code in zxingcpp.read_barcodes(image)]


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_pass_is_read_off_the_screen_at_full_and_at_half_size(world, look, size, scheme):
    path = world.access(await world.reserve())

    for locale in ("fr-MA", "ar-MA"):
        page = await look(path, size, locale, color_scheme=scheme)
        text = await page.get_attribute("[data-pass]", "data-pass")
        image = await picture(page)

        assert len(text) == 139
        assert codes(image) == [text]
        assert codes(image.resize((image.width // 2, image.height // 2))) == [text]


@pytest.mark.parametrize("size", [PHONE, (390, 844), (430, 932)])
async def test_the_pass_takes_at_least_three_fifths_of_a_phones_width(world, look, size):
    page = await look(world.access(await world.reserve()), size)

    box = await page.locator("[data-pass]").bounding_box()

    assert box["width"] >= 0.6 * size[0]
    assert box["y"] + box["height"] < size[1]


async def test_the_pass_stays_black_on_white_in_the_dark(world, look):
    page = await look(world.access(await world.reserve()), color_scheme="dark")

    box = await page.locator("[data-pass]").bounding_box()
    image = await picture(page)
    module = box["width"] / 49
    quiet = image.getpixel((round(box["x"] + 2 * module), round(box["y"] + box["height"] / 2)))
    corner = image.getpixel((round(box["x"] + 4.5 * module), round(box["y"] + 4.5 * module)))

    assert (quiet, corner) == (255, 0)
    assert image.getpixel((2, 2)) < 40


@pytest.mark.parametrize("locale", ["fr-MA", "en-GB", "ar-MA"])
async def test_nothing_runs_off_the_side_of_a_small_phone(world, look, locale):
    name = "Maximilienne-Alexandrine de La Rochefoucauld-Montmorency-Bouteville"
    reservation = await world.reserve(customer_name=name, guests=120, status="requested")

    for path in (world.access(reservation), world.claim(reservation), "/access/x"):
        page = await look(path, SMALL_PHONE, locale)
        assert await page.evaluate("document.documentElement.scrollWidth") == SMALL_PHONE[0]


@pytest.mark.parametrize("status", ["confirmed", "requested"])
@pytest.mark.parametrize("locale", ["fr-MA", "ar-MA"])
async def test_the_printed_card_fits_a_quarter_of_a4(world, look, status, locale):
    page = await look(world.access(await world.reserve(status=status)), locale=locale)
    await page.emulate_media(media="print")
    margin, millimetre = 8, 96 / 25.4
    await page.set_viewport_size(
        {"width": round((A4[0] - 2 * margin) * millimetre), "height": 1000}
    )

    card = await page.locator(".card").bounding_box()
    qr = await page.locator("[data-pass]").bounding_box()

    assert card["y"] == 0
    assert margin + card["width"] / millimetre <= A4[0] / 2
    assert margin + card["height"] / millimetre <= A4[1] / 2
    assert qr["width"] / millimetre >= 50
    assert not await page.locator(".actions").is_visible()


async def test_the_pages_are_light_complain_of_nothing_and_ask_nobody_else(world, look, server):
    reservation = await world.reserve()
    sizes = []

    for path in (world.access(reservation), world.claim(reservation)):
        page = await look(path)
        await page.wait_for_load_state("networkidle")
        here = str(server.make_url("/"))
        assert page.complaints == []
        assert [url for url in page.addresses if not url.startswith(here)] == []
        entries = "performance.getEntries().reduce((sum, e) => sum + (e.transferSize || 0), 0)"
        sizes.append(await page.evaluate(entries))

    assert 0 < max(sizes) < 60_000


async def test_the_card_works_without_scripts(world, look):
    page = await look(world.access(await world.reserve()), java_script_enabled=False)

    share = page.locator("[data-share]")

    assert codes(await picture(page)) == [await page.get_attribute("[data-pass]", "data-pass")]
    assert (await share.get_attribute("href")).startswith("mailto:?subject=")


async def test_the_screen_is_kept_awake_while_the_pass_shows(world, look):
    watch = "window.kept = []; WakeLock.prototype.request = async (kind) => { kept.push(kind); }"

    confirmed = await look(world.access(await world.reserve()), script=watch)
    dead = await look("/access/x", script=watch)

    assert await confirmed.evaluate("kept") == ["screen"]
    assert await dead.evaluate("kept") == []


async def test_the_share_button_opens_the_phones_own_sheet(world, look):
    path = world.access(await world.reserve())
    page = await look(path, script="navigator.share = async (what) => { window.shared = what; }")

    await page.click("[data-share]")

    shared = await page.evaluate("shared")
    assert shared["url"] == f"https://box.example{path}"
    assert "Riad Atlas" in shared["text"]


async def test_a_browser_without_that_sheet_copies_the_link(world, look):
    path = world.access(await world.reserve())
    page = await look(path, script="navigator.share = undefined; navigator.clipboard.writeText ="
                                   " async (text) => { window.copied = text; }")  # fmt: skip

    await page.click("[data-share]")

    assert (await page.evaluate("copied")).endswith(f"https://box.example{path}")
    assert await page.inner_text("[data-share]") == "Lien copié"


async def test_one_tap_on_the_claim_page_leads_to_the_pass(world, look):
    page = await look(world.claim(await world.reserve()), locale="en-GB")

    await page.click("text=Yes, this is my table")
    await page.click("text=See my entry code")

    assert len(await page.get_attribute("[data-pass]", "data-pass")) == 139


async def test_the_language_links_keep_the_page_and_turn_it_around(world, look):
    page = await look(world.access(await world.reserve()))

    await page.click("text=العربية")

    assert await page.get_attribute("html", "dir") == "rtl"
    assert await page.inner_text(".chip") == "مؤكد"
