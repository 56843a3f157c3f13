"""Booking over plain http, where browsers tell no Sec-Fetch-Site: our own page may, no other."""

import pytest

from tests.browser.chromium import browser_fixture
from tests.conftest import with_settings
from tests.web.guest.booking_form import a_form, reservations
from tests.web.guest.guest_world import guest_worlds
from web.guest.booking_form import new_token

OURS, FOREIGN = "http://riad-atlas.local/book", "http://foreign.example/"


@pytest.fixture
def settings():
    return with_settings(booking={"enabled": True})


@browser_fixture
async def world(box, clock):
    clock.set("2026-11-21T12:00:00Z")
    return guest_worlds(box, clock)[0]


@browser_fixture
async def page(server, browser):
    """A page of a browser to which every name is this server: none of them is trusted."""
    context = await browser.new_context(proxy={"server": f"http://127.0.0.1:{server.port}"})
    return await context.new_page()


def is_sent(request):
    return request.method == "POST"


@pytest.mark.proves("S15")
async def test_a_guest_books_on_our_own_page(page, world):
    await page.goto(OURS)
    await page.fill("[name=name]", "Youssef El Amrani")
    await page.fill("[name=email]", "youssef@example.org")
    world.clock.advance(20)

    async with page.expect_request(is_sent) as sent, page.expect_navigation():
        await page.click("[data-booking] button[type=submit]")

    headers = await (await sent.value).all_headers()
    assert "sec-fetch-site" not in headers
    assert headers["origin"] == "http://riad-atlas.local"
    assert len(await reservations(world)) == 1


@pytest.mark.proves("S15")
@pytest.mark.parametrize("policy", ["no-referrer", "same-origin", "unsafe-url"])
async def test_a_page_of_another_site_books_nothing(page, world, policy):
    fields = a_form(new_token(world.environment))
    world.clock.advance(20)
    inputs = "".join(f'<input name="{name}" value="{text}">' for name, text in fields.items())
    html = f'<form method="post" action="{OURS}">{inputs}<button>go</button></form>'
    await page.route(
        FOREIGN,
        lambda route: route.fulfill(
            body=html, content_type="text/html", headers={"Referrer-Policy": policy}
        ),
    )
    await page.goto(FOREIGN)

    async with page.expect_response(lambda answer: is_sent(answer.request)) as answered:
        await page.click("button")

    assert (await answered.value).status == 403
    assert await reservations(world) == []
