"""The booking page in a browser: choices are kept, and each guest books once."""

import pytest

from tests.app.guest.booking_form import a_form
from tests.app.guest.guest_world import guest_worlds
from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import a_guests_page
from tests.builders import table_id
from tests.conftest import set_rules, with_settings
from web.guest.booking_form import new_token

TWO = table_id("T2")
HOUR = "[name=when]:checked"


@pytest.fixture
def settings():
    return with_settings(booking={"hourly_for_address": 100})


@browser_fixture(autouse=True)
async def booking_page(box):
    await set_rules(box.live, booking_page=1)


@browser_fixture
async def world(box, clock):
    clock.set("2026-11-21T12:00:00Z")
    return guest_worlds(box, clock)[0]


@browser_fixture
async def page(server, browser):
    opened = await a_guests_page(browser, locale="en-GB")
    await opened.goto(str(server.make_url("/book")))
    return opened


async def offered(page, name, value):
    """Wait for the tables of another evening or party."""
    await page.wait_for_selector(
        f"[data-offer]:not([aria-busy]) input[name={name}][value='{value}']", state="attached"
    )


async def on(page, day):
    await page.click(f".chip-button[data-day='{day}']")
    await offered(page, "date", day)


async def choose(page, hour, table):
    await page.check(f"[name=when][value='{hour}']")
    await page.select_option(f"select[name='table-{hour}']", table)


OURS, FOREIGN = "http://riad-atlas.local/book", "http://foreign.example/"


async def book(page, clock, name="Youssef El Amrani", **options):
    await page.fill("[name=name]", name)
    await page.fill("[name=email]", "youssef@example.org")
    clock.advance(20)
    await page.click("[data-booking] button[type=submit]", **options)


async def booked(world):
    sql = "SELECT customer_name, slot FROM reservation ORDER BY seq"
    return await world.database.read(lambda reader: list(reader.rows(sql)))


async def test_choices_and_typed_text_are_kept_when_party_or_evening_changes(page):
    await page.fill("[name=name]", "Youssef")
    await choose(page, "22:00", TWO)
    assert not await page.is_visible("select[name='table-19:30']")

    await page.select_option("select[name=guests]", "3")
    await offered(page, "guests", 3)
    await on(page, "2026-11-22")

    assert await page.input_value(HOUR) == "22:00"
    assert await page.input_value("select[name='table-22:00']") == TWO
    assert await page.input_value("[name=name]") == "Youssef"
    assert await page.locator("[data-lost]:visible").count() == 0
    assert "date=2026-11-22&guests=3" in page.url
    assert page.complaints == []


async def test_a_double_click_books_once_and_opens_the_pass(page, world, clock):
    await book(page, clock, click_count=2)
    await page.wait_for_url("**/book/*")
    await page.click("main a.button[href*='/access/']")

    assert len(await page.get_attribute("[data-pass]", "data-pass")) == 139
    assert len(await booked(world)) == 1


async def test_booking_works_without_javascript(world, server, browser, clock):
    page = await a_guests_page(browser, java_script_enabled=False)
    await page.goto(str(server.make_url("/book")))

    await page.click(".chip-button:nth-child(2)")
    await page.click("button:has-text('Voir les tables libres')")
    await book(page, clock)

    assert len(await booked(world)) == 1


async def test_a_form_that_does_not_reach_the_box_keeps_its_input_and_can_be_sent_again(
    page, world, clock
):
    await page.route("**/book*", lambda route: route.abort())
    await book(page, clock)
    await page.wait_for_selector("[data-unanswered]")
    assert await page.input_value("[name=name]") == "Youssef El Amrani"

    await page.unroute("**/book*")
    await page.click("[data-booking] button[type=submit]")
    await page.wait_for_url("**/book/*")
    assert len(await booked(world)) == 1


async def test_a_guest_who_loses_a_table_stays_on_the_page_and_can_choose_another(
    page, world, clock
):
    await choose(page, "19:30", TWO)
    await world.reserve(table_id=TWO)

    await book(page, clock)
    await page.wait_for_selector(".fault")
    await page.click("[data-booking] button[type=submit]")
    await page.wait_for_url("**/book/*")

    assert len(await booked(world)) == 2


@browser_fixture
async def stranger(server, browser):
    """A page of a browser that resolves every name to this server, without trusting any."""
    context = await browser.new_context(proxy={"server": f"http://127.0.0.1:{server.port}"})
    return await context.new_page()


def is_sent(request):
    return request.method == "POST"


async def test_guests_can_book_over_plain_http_on_the_boxs_own_page(stranger, world, clock):
    await stranger.goto(OURS)

    async with stranger.expect_request(is_sent) as sent, stranger.expect_navigation():
        await book(stranger, clock)

    headers = await (await sent.value).all_headers()
    assert "sec-fetch-site" not in headers
    assert headers["origin"] == "http://riad-atlas.local"
    assert len(await booked(world)) == 1


async def test_a_page_of_another_site_cannot_book_over_plain_http(stranger, world):
    fields = a_form(new_token(world.environment))
    world.clock.advance(20)
    inputs = "".join(f'<input name="{name}" value="{text}">' for name, text in fields.items())
    html = f'<form method="post" action="{OURS}">{inputs}<button>go</button></form>'
    headers = {"Content-Type": "text/html"}
    await stranger.route(FOREIGN, lambda route: route.fulfill(body=html, headers=headers))
    for policy in ("no-referrer", "same-origin", "unsafe-url"):
        headers["Referrer-Policy"] = policy
        await stranger.goto(FOREIGN)

        async with stranger.expect_response(lambda answer: is_sent(answer.request)) as answered:
            await stranger.click("button")

        assert (await answered.value).status == 403
    assert await booked(world) == []
