"""Keys, endpoints and deliveries in a browser, by keyboard alone."""

import hashlib
import hmac
import re

import pytest

from tests.app.portal.people import a_person
from tests.browser.chromium import browser_fixture
from tests.browser.keyboard import press, reach, write
from tests.conftest import with_settings
from tests.webhooks.receivers import OK, Receiver, a_server, an_answer

ROOM = "/test/portal/integrations"


@pytest.fixture
def settings():
    return with_settings(
        api={"rate_limit_per_minute": 1000},
        webhooks={"allow_networks": ("127.0.0.0/8",), "clock_grace_minutes": 0},
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
    context = await browser.new_context(
        base_url=str(running.client.make_url("/")),
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    await sign_in(running, context, manager)
    opened = await context.new_page()
    opened.set_default_timeout(60_000)
    opened.complaints, opened.addresses = [], []
    opened.on("console", lambda message: opened.complaints.append(message.text))
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.on("request", lambda request: opened.addresses.append(request.url))
    yield opened
    assert opened.complaints == []


async def secret_of(page):
    return (await page.locator("#secret").inner_text()).strip()


async def go(page, label, path):
    async with page.expect_navigation(url=re.compile(path)):
        await press(page, label)


async def register(page, url):
    """Register an endpoint for test events by keyboard; return its secret."""
    await page.goto(ROOM)
    await go(page, "New endpoint", "endpoints/new")
    await page.locator("main input:focus").wait_for()
    await page.keyboard.type(url)
    await go(page, "Register the endpoint", "endpoints/[0-9a-f-]{36}")
    return await secret_of(page)


async def sign_in(running, context, person):
    """Give the browser that person's session cookie; a header would not survive redirects."""
    name, _, value = person.headers["Cookie"].partition("=")
    url = str(running.client.make_url("/")).replace("http:", "https:")
    await context.add_cookies([{"name": name, "value": value, "url": url, "secure": True}])


def verifies(request, secret):
    """Verify the signature as a partner does (interface, section 6.3)."""
    t, *signatures = request.headers["x-service-signature"].split(",")
    digest = hmac.new(secret.encode(), t[2:].encode() + b"." + request.raw, hashlib.sha256)
    return f"v1={digest.hexdigest()}" in signatures


async def test_the_first_key_has_chosen_rights_is_copied_and_shown_this_once(running, page):
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
    key = await secret_of(page)
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


async def test_a_dead_delivery_is_replayed_and_arrives_signed(running, page, receiver):
    receiver.always = an_answer(500, body=b"out of order")
    secret = await register(page, receiver.url)
    await go(page, "Send a test event", "deliveries/[0-9a-f-]{36}")
    await page.get_by_text("Answered with status 500").wait_for()

    def kill(tx):
        tx.execute("UPDATE delivery SET state = 'dead', finished_at = :now", {"now": tx.now})

    await running.test.database.write(kill)
    receiver.always = OK
    await page.goto(f"{ROOM}/deliveries?state=dead")
    await go(page, "webhook.test", "deliveries/[0-9a-f-]{36}")
    sent = await page.locator("#request-head").inner_text()
    await go(page, "Replay this delivery", "note=replayed")
    await page.locator(".attempts .good").wait_for()
    failed, arrived = receiver.requests

    assert failed.headers["x-service-signature"] in sent
    assert failed.id == arrived.id
    assert verifies(arrived, secret)


async def test_an_endpoint_is_rolled_and_both_secrets_sign(page, receiver):
    first = await register(page, receiver.url)

    await press(page, "Renew the secret")
    await go(page, "Yes, renew it", "endpoints/[0-9a-f-]{36}")
    second = await secret_of(page)
    await go(page, "Send a test event", "deliveries/[0-9a-f-]{36}")
    (request,) = await receiver.got(1)

    assert first != second
    assert verifies(request, first)
    assert verifies(request, second)
