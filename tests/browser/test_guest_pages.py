"""Every page of a guest on a phone and a desk, light and dark, in three languages."""

from itertools import product

import pytest

from tests.browser.accessibility import violations
from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import DESKTOP, PHONE, a_guests_page
from tests.builders import table_id
from tests.conftest import with_settings
from tests.soak.scale import FULL
from tests.web.guest.guest_world import guest_worlds

PAIRS = [  # each size with each scheme and language; `make soak` looks at all twelve
    (PHONE, "light", "fr-MA"), (PHONE, "dark", "ar-MA"), (PHONE, "dark", "en-GB"),
    (DESKTOP, "light", "ar-MA"), (DESKTOP, "dark", "fr-MA"), (DESKTOP, "light", "en-GB"),
]  # fmt: skip
EVERY = list(product((PHONE, DESKTOP), ("light", "dark"), ("fr-MA", "en-GB", "ar-MA")))
LOOKS = EVERY if FULL else PAIRS
TRANSFERRED = "performance.getEntries().reduce((sum, e) => sum + (e.transferSize || 0), 0)"
LOADED = "performance.getEntriesByType('resource').map((e) => [e.name, e.initiatorType])"


@pytest.fixture
def settings():
    return with_settings(booking={"enabled": True, "hourly_for_address": 100})


@browser_fixture
async def world(box, clock):
    clock.set("2026-11-21T12:00:00Z")
    world = guest_worlds(box, clock)[0]
    await world.database.write(
        lambda tx: tx.execute("UPDATE venue SET address = '12 derb El Ferrane, Marrakech'")
    )
    return world


async def book(page, clock, name="Youssef El Amrani", **options):
    await page.fill("[name=name]", name)
    await page.fill("[name=email]", "youssef@example.org")
    clock.advance(20)
    await page.click("[data-booking] button[type=submit]", **options)


@pytest.mark.parametrize(("size", "scheme", "locale"), LOOKS)
async def test_no_page_has_a_violation_nor_runs_off_the_side(
    world, server, browser, clock, size, scheme, locale
):
    page = await a_guests_page(browser, size, locale, color_scheme=scheme)
    coming = await world.reserve(date="2026-11-22")
    requested = await world.reserve(date="2026-11-23", status="requested")
    cancelled = await world.reserve(date="2026-11-24", status="cancelled")
    await page.goto(str(server.make_url(world.claim(coming))))
    await page.click("form button")
    paths = [world.access(coming), world.access(requested), world.access(cancelled),
             world.claim(requested), f"{world.claim(coming)}/cancel", "/me", f"/me/{coming}",
             f"/me/{coming}/cancel", "/book", "/book?date=2026-11-22", "/access/x"]  # fmt: skip

    for path in paths:
        await page.goto(str(server.make_url(path)))
        await page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
        assert await violations(page) == [], path
        assert await page.evaluate("document.documentElement.scrollWidth") <= size[0], path
    await page.goto(str(server.make_url("/book")))
    await book(page, clock, name=" ‍ ")
    await page.wait_for_selector(".fault")
    assert await violations(page) == []
    await book(page, clock)
    await page.wait_for_url("**/book/*")
    assert await violations(page) == []


async def test_another_evening_shows_at_once_and_keeps_what_was_typed(world, server, browser):
    page = await a_guests_page(browser, locale="fr-MA")
    await page.goto(str(server.make_url("/book")))
    await page.fill("[name=name]", "Youssef")

    await page.click(".chip-button:nth-child(2)")
    await page.wait_for_selector("[data-offer] legend:has-text('Demain')")
    await page.select_option("select[name=guests]", "4")
    await page.wait_for_selector("[data-offer] input[name=guests][value='4']", state="attached")

    assert await page.input_value("[name=name]") == "Youssef"
    assert await page.input_value("input[type=date]") == "2026-11-22"
    assert await page.locator(".choice-title").all_inner_texts() == [
        "Brunch", "Dîner", "Soirée", "Toute la soirée"
    ]  # fmt: skip
    assert "date=2026-11-22&guests=4" in page.url
    assert page.complaints == []


async def test_a_table_is_asked_for_once_its_hour_is_chosen(world, server, browser):
    page = await a_guests_page(browser)
    await page.goto(str(server.make_url("/book")))

    await page.click("label:has-text('Soirée') >> nth=0")

    assert await page.is_visible("select[name='table-22:00']")
    assert not await page.is_visible("select[name='table-19:30']")


async def test_booking_works_from_the_form_to_the_pass_and_with_a_double_click(
    world, server, browser, clock
):
    page = await a_guests_page(browser, locale="en-GB")
    await page.goto(str(server.make_url("/book")))

    await book(page, clock, click_count=2)
    await page.wait_for_url("**/book/*")
    await page.click("text=See my entry code")

    assert len(await page.get_attribute("[data-pass]", "data-pass")) == 139
    count = "SELECT count(*) FROM reservation"
    assert await world.database.read(lambda reader: reader.value(count)) == 1


async def test_booking_works_without_scripts(world, server, browser, clock):
    page = await a_guests_page(browser, java_script_enabled=False)
    await page.goto(str(server.make_url("/book")))

    await page.click(".chip-button:nth-child(2)")
    await page.click("text=Voir ce qui est libre")
    await book(page, clock)

    assert "Demain" in await page.inner_text(".facts")


async def test_who_comes_second_stays_on_the_page_and_takes_another_table(
    world, server, browser, clock
):
    page = await a_guests_page(browser)
    await page.goto(str(server.make_url("/book")))
    await page.select_option("select[name='table-19:30']", table_id("T2"))
    await world.reserve(table_id=table_id("T2"))

    await book(page, clock)
    alert = await page.inner_text(".fault")
    await page.click("[data-booking] button[type=submit]")
    await page.wait_for_url("**/book/*")

    assert "Encore libres" in alert
    assert "T1" in await page.inner_text(".facts")


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
async def test_every_page_is_light_whole_after_one_round_trip_and_asks_nobody_else(
    world, server, browser, size
):
    reservation = await world.reserve(date="2026-11-22")
    here = str(server.make_url("/"))

    for path in (world.access(reservation), world.claim(reservation), "/book", "/me"):
        page = await a_guests_page(browser, size)
        await page.goto(str(server.make_url(path)))
        await page.wait_for_load_state("networkidle")

        loaded = dict(await page.evaluate(LOADED))
        by_files = [name for name, kind in loaded.items() if kind == "css"]
        assert 0 < await page.evaluate(TRANSFERRED) < 60_000
        assert by_files == []  # no file names another one: one round trip after the page
        assert [url for url in page.addresses if not url.startswith(here)] == []
        assert page.complaints == []
        await page.context.close()
