"""Keys, endpoints and deliveries in a browser, by keyboard alone."""

import re

import pytest

from tests.app.portal.people import a_person
from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import DESKTOP, a_guests_page
from tests.browser.keyboard import press, reach, write
from tests.conftest import with_settings
from tests.webhooks.receivers import OK, Receiver, a_server, an_answer

ROOM = "/test/portal/integrations"


@pytest.fixture
def settings():
    return with_settings(
        api={"rate_limit_per_minute": 1000},
        webhooks={"allow_networks": ("127.0.0.0/8",)},
    )


@browser_fixture
async def receiver():
    found = Receiver()
    async with a_server(found.converse) as port:
        found.port = port
        yield found


@browser_fixture
async def page(running, browser):
    """The portal of a manager, in English; it must log no errors."""
    manager = await a_person(running, "manager")
    url = str(running.client.make_url("/"))
    opened = await a_guests_page(
        browser, DESKTOP, "en-GB", base_url=url, reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )  # fmt: skip
    name, _, value = manager.headers["Cookie"].partition("=")
    cookie = {"name": name, "value": value, "secure": True}
    await opened.context.add_cookies([{**cookie, "url": url.replace("http:", "https:")}])
    opened.set_default_timeout(60_000)
    yield opened
    assert opened.complaints == []


async def go(page, label, path):
    async with page.expect_navigation(url=re.compile(path)):
        await press(page, label)


async def test_a_new_key_has_the_chosen_rights_can_be_copied_and_is_shown_only_once(running, page):
    await page.goto("/portal/integrations")
    await go(page, "New key", "keys/new")
    await write(page, "name", "Concierge Marrakech")
    right = page.get_by_label("venue:read")
    assert not await right.is_visible()
    await reach(page, page.get_by_label("All rights"))
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await reach(page, right)
    await page.keyboard.press("Space")
    await go(page, "Create the key", "keys/[0-9a-f-]{36}")
    key = (await page.locator("#secret").inner_text()).strip()
    await press(page, "Copy")
    await page.get_by_text("Copied").wait_for()
    assert await page.evaluate("navigator.clipboard.readText()") == key
    assert (await running.call("GET", "/v1/venue", key=key))[0] == 200
    assert (await running.call("GET", "/v1/reservations", key=key))[0] == 403
    assert not any(key in address for address in page.addresses)

    await go(page, "All keys", "integrations$")
    await page.go_back()
    after_back = await page.content()
    await page.reload()
    after_reload = await page.content()
    await page.go_back()
    await page.go_forward()
    assert key not in after_back + after_reload + await page.content()


async def test_a_dead_delivery_can_be_replayed_and_its_page_updates(running, page, receiver):
    receiver.always = an_answer(500, body=b"out of order")
    await page.goto(ROOM)
    await go(page, "New endpoint", "endpoints/new")
    await page.locator("main input:focus").wait_for()
    await page.keyboard.type(receiver.url)
    await go(page, "Register the endpoint", "endpoints/[0-9a-f-]{36}")
    await go(page, "Send a test event", "deliveries/[0-9a-f-]{36}")
    await page.get_by_text("Answered with status 500").wait_for()

    def kill(tx):
        tx.execute("UPDATE delivery SET state = 'dead', finished_at = :now", {"now": tx.now})

    await running.test.database.write(kill)
    receiver.always = OK
    await page.goto(f"{ROOM}/deliveries?state=dead")
    await go(page, "webhook.test", "deliveries/[0-9a-f-]{36}")
    await go(page, "Replay this delivery", "note=replayed")
    await page.locator(".attempts .good").wait_for()
