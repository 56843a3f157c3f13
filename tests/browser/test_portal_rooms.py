"""The portal's sections venue and account in a browser, by keyboard."""

import base64
import io
from urllib.parse import parse_qs, urlsplit

from PIL import Image

from appliance.staff.two_factor import totp_code
from appliance.venue.model import list_tables
from tests.app.portal.people import PASSWORD
from tests.browser.accessibility import violations
from tests.browser.keyboard import is_within, press, reach, write
from tests.browser.phones import PHONE
from tests.qr_codes import qr_codes

TWENTY = "A1-A12;Allée 1;2;4;standard;300\nB1-B6;Bar 1;1;2;bar\nV1;Salon Zellige;4;10;vip;3000\nV2"
NEXT_SATURDAY = "2026-11-28"


async def numbers(portal):
    tables = await portal.box.environment.database.read(list_tables)
    return [table.number for table in tables]


async def drag_fifth_to_second(page):
    target = await page.locator("[data-table]:nth-child(2)").bounding_box()
    await page.locator("[data-table]:nth-child(5) [data-handle]").hover()
    await page.mouse.down()
    await page.mouse.move(target["x"] + 40, target["y"] + 30, steps=4)
    await page.mouse.move(target["x"] + 40, target["y"] + 5, steps=4)
    await page.mouse.up()


async def test_twenty_tables_can_be_pasted_and_reordered_by_arrows_and_by_dragging(portal):
    page = await portal.desk(role="manager")
    await page.goto("/portal/venue")

    await reach(page, page.locator("textarea[name=list]"))
    await page.keyboard.insert_text(TWENTY)
    await reach(page, page.locator("form[action$=preview] button"))
    await page.keyboard.press("Enter")
    await page.wait_for_selector("form[action$='/venue/tables'] button")
    assert await violations(page) == []
    assert await numbers(portal) == ["T1", "T2", "T3", "T4", "T5", "T6"]
    await page.keyboard.press("Enter")  # the focus is on "add" already
    await page.wait_for_selector(".note")
    assert len(await numbers(portal)) == 26

    await reach(page, page.locator("[data-table]:nth-child(3) button.step").first)
    async with page.expect_navigation():
        await page.keyboard.press("Enter")
    focused = "document.activeElement.matches('[data-table]:nth-child(2) button.step')"
    assert await page.evaluate(focused)
    async with page.expect_navigation():
        await drag_fifth_to_second(page)

    assert (await numbers(portal))[:6] == ["T1", "T5", "T3", "T2", "T4", "T6"]
    assert portal.complaints == []


async def test_a_table_order_that_did_not_reach_the_box_does_not_look_saved(portal):
    page = await portal.desk(role="manager")
    await page.goto("/portal/venue")
    await page.route("**/venue/order", lambda route: route.abort())

    await drag_fifth_to_second(page)

    await page.wait_for_selector("#problem [data-out-of-reach]")
    shown = await page.locator("[data-table] th").all_inner_texts()
    assert shown == await numbers(portal)
    assert portal.complaints == []


async def test_a_closing_day_shows_its_weekday_its_errors_and_the_expected_guests(portal):
    guest = await portal.box.guest(date=NEXT_SATURDAY, customer_name="Salma Idrissi")
    page = await portal.desk(role="manager", locale="en-US")
    await page.goto("/portal/venue/closings")

    await reach(page, page.locator("input[name=first]"))
    await page.keyboard.type("11282026")  # as an American browser has it: the page says which day
    await page.locator(".in-words").get_by_text("sam. 28 nov.").wait_for()
    await page.fill("[name=last]", "2026-11-27")
    await write(page, "reason", "Travaux")
    await page.keyboard.press("Enter")
    await page.locator("label:has([name=last]) .refused").wait_for()
    assert await page.input_value("[name=reason]") == "Travaux"
    assert await page.evaluate("document.activeElement.name") == "last"
    assert await violations(page) == []

    await page.fill("[name=last]", NEXT_SATURDAY)
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#clash-title")
    assert await page.get_attribute(".clashes a", "href") == f"/portal/reservations/{guest.id}"
    assert await violations(page) == []
    assert await portal.box.rows("SELECT count(*) FROM closing_day") == [(0,)]
    await reach(page, page.locator("button.danger-button"))
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".note")
    assert await portal.box.rows("SELECT first_day, reason FROM closing_day") == [
        (NEXT_SATURDAY, "Travaux")
    ]
    assert portal.complaints == []


async def sign_in(page, name):
    await write(page, "name", name)
    await write(page, "password", PASSWORD)
    await page.keyboard.press("Enter")


async def scan(page):
    """Return the secret in the QR code on the page."""
    picture = Image.open(io.BytesIO(await page.locator(".pairing-code svg").screenshot()))
    [code] = qr_codes(picture.convert("L"))
    return base64.b32decode(parse_qs(urlsplit(code).query)["secret"][0])


def shown(portal, secret):
    """Return the code that the authenticator app shows now."""
    return totp_code(secret, portal.box.clock.now() // 30_000)


async def test_an_authenticator_app_can_be_added_used_and_replaced_by_a_recovery_code(portal):
    page = await portal.desk(viewport=PHONE)
    [(name,)] = await portal.box.rows("SELECT name FROM staff")
    await portal.set_passwords()
    await page.goto("/portal/account")
    await write(page, "password", PASSWORD, within="form[action$='/second-step']")
    await page.keyboard.press("Enter")
    await page.locator(".pairing-code").wait_for()
    secret = await scan(page)
    for code, answer in (("000000", ".problem"), (shown(portal, secret), "#recovery-codes")):
        await write(page, "code", code)
        await page.keyboard.press("Enter")
        await page.locator(answer).wait_for()
        assert await violations(page) == []
        assert await is_within(page, PHONE["width"])
    codes = await page.locator("#recovery-codes code").all_inner_texts()
    assert len(codes) == 10

    portal.box.clock.advance(60)
    stranger = await portal.stranger("ar", viewport=PHONE)
    for kind in ("code", "recovery"):
        await stranger.context.clear_cookies()
        await stranger.goto("/portal/sign-in")
        await sign_in(stranger, name)
        field = stranger.locator("[name=code]")
        await field.wait_for()
        assert await field.get_attribute("autocomplete") == "one-time-code"
        assert await field.evaluate("element => element === document.activeElement")
        if kind == "recovery":
            await press(stranger, "استعمال رمز استرجاع")
        await write(stranger, kind, shown(portal, secret) if kind == "code" else codes[0].lower())
        assert await violations(stranger) == []
        await stranger.keyboard.press("Enter")
        await stranger.wait_for_url("**/portal/tonight")
    assert portal.complaints == []
