"""The booking page after Back, and what a guest chose before they looked at another evening."""

import re

import pytest

from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import a_guests_page
from tests.builders import table_id
from tests.conftest import with_settings
from tests.web.guest.guest_world import guest_worlds

TWO = table_id("T2")
HOUR = "[name=when]:checked"
LOST = "[data-lost={}]:not([hidden])"


@pytest.fixture
def settings():
    return with_settings(booking={"enabled": True, "hourly_for_address": 100})


@browser_fixture
async def world(box, clock):
    clock.set("2026-11-21T12:00:00Z")
    return guest_worlds(box, clock)[0]


@browser_fixture
async def page(server, browser):
    opened = await a_guests_page(browser, locale="en-GB")
    await opened.goto(str(server.make_url("/book")))
    return opened


async def for_so_many(page, guests):
    await page.select_option("select[name=guests]", str(guests))
    await page.wait_for_selector(
        f"[data-offer]:not([aria-busy]) input[name=guests][value='{guests}']", state="attached"
    )


async def on(page, day):
    await page.click(f".chip-button[value='{day}']")
    await page.wait_for_selector(
        f"[data-offer]:not([aria-busy]) input[name=date][value='{day}']", state="attached"
    )


async def choose(page, hour, table):
    await page.check(f"[name=when][value='{hour}']")
    await page.select_option(f"select[name='table-{hour}']", table)


async def test_the_chosen_hour_and_table_stay_chosen_for_another_party_and_evening(page):
    await choose(page, "22:00", TWO)

    await for_so_many(page, 3)
    await on(page, "2026-11-22")

    assert await page.input_value(HOUR) == "22:00"
    assert await page.input_value("select[name='table-22:00']") == TWO
    assert await page.locator("[data-lost]:visible").count() == 0


async def test_an_hour_that_is_full_is_left_to_choose_and_comes_back_where_it_is_free(page, world):
    for number in ("T1", "T2", "T3", "T4", "T5"):
        await world.reserve(table_id=table_id(number), slot="22:00", date="2026-11-22")
    await choose(page, "22:00", TWO)

    await on(page, "2026-11-22")
    is_told = await page.is_visible(LOST.format("hour"))
    chosen = await page.locator(HOUR).count()
    await on(page, "2026-11-21")

    assert (is_told, chosen) == (True, 0)
    assert await page.input_value(HOUR) == "22:00"
    assert await page.input_value("select[name='table-22:00']") == TWO


async def test_a_table_that_is_taken_that_evening_is_told_and_the_hour_stays(page, world):
    await world.reserve(table_id=TWO, slot="22:00", date="2026-11-22")
    await choose(page, "22:00", TWO)

    await on(page, "2026-11-22")

    assert await page.is_visible(LOST.format("table"))
    assert await page.input_value(HOUR) == "22:00"
    assert await page.input_value("select[name='table-22:00']") == ""


async def test_the_hour_that_the_page_chose_does_not_jump_when_the_party_changes(page, world):
    for number in ("T1", "T2", "T3", "T4", "T5"):
        await world.reserve(table_id=table_id(number), slot="19:30")
    assert await page.input_value(HOUR) == "19:30"

    await for_so_many(page, 3)

    assert await page.locator(HOUR).count() == 0
    assert await page.is_visible(LOST.format("hour"))


async def test_after_back_another_table_is_booked_and_not_the_first_one_shown_again(
    world, server, clock, chromium
):
    browser = await chromium.launch(ignore_default_args=["--disable-back-forward-cache"])
    page = await a_guests_page(browser, locale="en-GB")
    await page.add_init_script("addEventListener('pageshow', (e) => { was = e.persisted })")
    for name, slot in (("Guest Zero", "12:00"), ("Guest One", "19:30")):
        # The first one gives the browser its cookie: with a new one it keeps no such page.
        await page.goto(str(server.make_url("/book?date=2026-11-22")))
        await book(page, clock, name, slot)

    await page.evaluate("setTimeout(() => history.back(), 10)")
    await page.wait_for_url(re.compile("/book[?]"), wait_until="commit")
    # The page as it is by now: one table less, and a token of its own.
    await page.wait_for_selector(".choice:has([value='19:30']):has-text('4 tables')")
    was_kept = await page.evaluate("was")
    await book(page, clock, "Guest Two", "22:00")

    assert was_kept
    assert "Guest Two" in await page.inner_text(".facts")
    sql = "SELECT customer_name, slot FROM reservation ORDER BY seq"
    assert await world.database.read(lambda reader: list(reader.rows(sql))) == [
        ("Guest Zero", "12:00"), ("Guest One", "19:30"), ("Guest Two", "22:00")
    ]  # fmt: skip
    await browser.close()


async def book(page, clock, name, slot):
    await page.check(f"[name=when][value='{slot}']")
    await page.fill("[name=name]", name)
    await page.fill("[name=phone]", "+212 600 000 000")
    clock.advance(20)
    await page.click("[data-booking] button[type=submit]")
    await page.wait_for_url("**/book/*")
