"""Keys, endpoints and deliveries in a real browser: by keyboard alone, on a tablet and a desk."""

import hashlib
import hmac
import os

import pytest

from appliance.store.conditions import Condition, put_condition
from appliance.webhooks.conditions import CLOCK_HELD
from tests.appliance.webhooks.receivers import OK, Receiver, a_server, an_answer
from tests.browser.accessibility import faults
from tests.browser.chromium import browser_fixture
from tests.browser.tabbing import follow, press, tab_to, write
from tests.builders import a_body
from tests.conftest import with_settings
from tests.web.portal.people import a_person

DESKTOP, TABLET = {"width": 1280, "height": 800}, {"width": 768, "height": 1024}
LOOKS = pytest.mark.parametrize(
    ("language", "size", "scheme"),
    [("fr", DESKTOP, "light"), ("ar", DESKTOP, "dark"), ("fr", TABLET, "light"),
     ("ar", TABLET, "dark")],
    ids=["fr-desktop-light", "ar-desktop-dark", "fr-tablet-light", "ar-tablet-dark"],
)  # fmt: skip
SIZES = pytest.mark.parametrize("size", [DESKTOP, TABLET], ids=["desktop", "tablet"])
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
    """The portal of a manager who reads English; nothing may be complained of."""
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


async def sign_in(running, context, person):
    """The browser has that person's session; a header of its own would not outlive a redirect."""
    name, _, value = person.headers["Cookie"].partition("=")
    url = str(running.client.make_url("/")).replace("http:", "https:")
    await context.add_cookies([{"name": name, "value": value, "url": url, "secure": True}])


async def secret_of(page):
    return (await page.locator("#secret").inner_text()).strip()


async def register(page, url):
    """An endpoint for test events, by keyboard; its secret."""
    await page.goto(ROOM)
    await follow(page, "New endpoint", "endpoints/new")
    await write(page, url)
    await follow(page, "Register the endpoint", "endpoints/[0-9a-f-]{36}")
    return await secret_of(page)


def verifies(request, secret):
    """The partner's own check (interface, section 6.3)."""
    t, *signatures = request.headers["x-service-signature"].split(",")
    digest = hmac.new(secret.encode(), t[2:].encode() + b"." + request.raw, hashlib.sha256)
    return f"v1={digest.hexdigest()}" in signatures


@SIZES
async def test_the_first_key_is_made_copied_and_opens_the_interface(running, page, size):
    await page.set_viewport_size(size)
    await page.goto("/portal/integrations")

    await follow(page, "New key", "keys/new")
    await write(page, "Concierge Marrakech")
    await follow(page, "Make the key", "keys/[0-9a-f-]{36}")
    key = await secret_of(page)
    await press(page, "Copy")
    await page.get_by_text("Copied").wait_for()
    copied = await page.evaluate("navigator.clipboard.readText()")
    status, _, _ = await running.call("GET", "/v1/venue", key=copied)

    assert copied == key
    assert status == 200
    assert not any(key in address for address in page.addresses)


async def test_a_secret_is_gone_after_back_and_forward_and_reload(page):
    await page.goto("/portal/integrations/keys/new")
    await write(page, "Concierge")
    await follow(page, "Make the key", "keys/[0-9a-f-]{36}")
    key = await secret_of(page)

    await follow(page, "To all keys", "integrations$")
    await page.go_back()
    after_back = await page.content()
    await page.reload()
    after_reload = await page.content()
    await page.go_back()
    await page.go_forward()

    assert key not in after_back + after_reload + await page.content()
    assert await page.locator("h1").inner_text() == "Concierge"


async def test_rights_are_chosen_by_keyboard_and_shown_only_then(running, page):
    await page.goto("/portal/integrations/keys/new")
    await write(page, "Reader")
    box = page.get_by_label("venue:read")
    hidden = not await box.is_visible()

    await tab_to(page, "All rights")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await press(page, "venue:read", "Space")
    await follow(page, "Make the key", "keys/[0-9a-f-]{36}")
    key = await secret_of(page)

    assert hidden
    assert (await running.call("GET", "/v1/venue", key=key))[0] == 200
    assert (await running.call("GET", "/v1/reservations", key=key))[0] == 403


@SIZES
async def test_a_dead_delivery_is_replayed_and_arrives_signed(running, page, receiver, size):
    await page.set_viewport_size(size)
    receiver.always = an_answer(500, body=b"out of order")
    secret = await register(page, receiver.url)
    await follow(page, "Send a test event", "deliveries/[0-9a-f-]{36}")
    await page.get_by_text("Answered with status 500").wait_for()

    def kill(tx):
        tx.execute("UPDATE delivery SET state = 'dead', finished_at = :now", {"now": tx.now})

    await running.test.database.write(kill)
    receiver.always = OK
    await page.goto(f"{ROOM}/deliveries?state=dead")
    await follow(page, "webhook.test", "deliveries/[0-9a-f-]{36}")
    sent = await page.locator("#request-head").inner_text()
    await follow(page, "Replay this delivery", "note=replayed")
    await page.locator(".attempts .good").wait_for()
    failed, arrived = receiver.requests

    assert failed.headers["x-service-signature"] in sent
    assert failed.id == arrived.id
    assert verifies(arrived, secret)
    assert await page.locator(".page-head .chip").inner_text() == "Delivered"


async def test_all_dead_of_an_endpoint_go_out_after_their_count_was_said(running, page, receiver):
    receiver.always = an_answer(503)
    await register(page, receiver.url)
    for _ in range(2):
        await follow(page, "Send a test event", "deliveries/[0-9a-f-]{36}")
        await page.get_by_text("Answered with status 503").wait_for()
        await follow(page, receiver.url, "endpoints/[0-9a-f-]{36}")

    def kill(tx):
        tx.execute("UPDATE delivery SET state = 'dead', finished_at = :now", {"now": tx.now})

    await running.test.database.write(kill)
    receiver.always = OK
    await page.reload()
    await follow(page, "Replay 2 dead deliveries", "replay[?]endpoint=")
    await page.get_by_role("heading", name="2 deliveries go out again").wait_for()
    await follow(page, "Replay 2 deliveries", "replays/")
    await page.get_by_text("Nothing waits any more.").wait_for()

    assert "2 deliveries put in line" in await page.locator("#progress").inner_text()
    assert len(receiver.requests) == 4


async def test_an_endpoint_is_rolled_and_both_secrets_sign(page, receiver):
    first = await register(page, receiver.url)

    await press(page, "Roll the secret")
    await follow(page, "Yes, roll it", "endpoints/[0-9a-f-]{36}")
    second = await secret_of(page)
    await follow(page, "Send a test event", "deliveries/[0-9a-f-]{36}")
    (request,) = await receiver.got(1)

    assert first != second
    assert verifies(request, first)
    assert verifies(request, second)


async def test_without_a_script_everything_works_too(running, page, receiver):
    context = await page.context.browser.new_context(
        base_url=str(running.client.make_url("/")),
        java_script_enabled=False,
    )
    await sign_in(running, context, await a_person(running, "owner"))
    plain = await context.new_page()
    await plain.goto(f"{ROOM}/endpoints/new")
    await plain.get_by_label("Address").fill(receiver.url)
    await plain.get_by_role("button", name="Register the endpoint").click()
    secret = await secret_of(plain)
    await plain.get_by_role("button", name="Send a test event").click()
    (request,) = await receiver.got(1)

    assert verifies(request, secret)
    await context.close()


@LOOKS
async def test_no_page_breaks_a_rule_of_accessibility_or_is_wider_than_the_screen(
    running, page, receiver, language, size, scheme
):
    await page.set_viewport_size(size)
    await page.emulate_media(color_scheme=scheme)
    receiver.always = an_answer(500, body=b'{"error": "out of order"}')
    await register(page, receiver.url)
    endpoint = page.url
    await follow(page, "Send a test event", "deliveries/[0-9a-f-]{36}")
    await page.get_by_text("Answered with status 500").wait_for()
    delivery = page.url
    for guests in (2, 3):
        await running.call("POST", "/test/v1/reservations", json=a_body(guests=guests))
    now = running.clock.now()
    await running.test.database.write(put_condition, Condition(CLOCK_HELD, "", now, "…"))
    await page.goto(f"{ROOM}/keys/new")
    await write(page, "Concierge")
    await follow(page, "Make the key", "keys/[0-9a-f-]{36}")

    found = {"key": await faults(page)}
    paths = [ROOM, f"{ROOM}/keys/new", f"{ROOM}/endpoints/new", endpoint, f"{ROOM}/deliveries",
             delivery, f"{ROOM}/replay?endpoint={endpoint.rpartition('/')[2]}&which=all",
             f"{ROOM}/warnings"]  # fmt: skip
    for path in paths:
        await page.goto(path + ("&" if "?" in path else "?") + f"lang={language}")
        await page.evaluate(
            "for (const d of document.querySelectorAll('main details')) d.open = true"
        )
        found[path] = await faults(page)
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= size["width"], path
        if shots := os.environ.get("SHOTS"):
            name = f"{language}-{size['width']}-{scheme}-{paths.index(path)}.png"
            await page.screenshot(path=f"{shots}/{name}", full_page=True)

    assert {path: rules for path, rules in found.items() if rules} == {}
