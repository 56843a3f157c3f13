"""A second step in a real browser: the QR code is read as an app reads it, without a pointer."""

import base64
import io
from urllib.parse import parse_qs, urlsplit

import argon2
import pytest
import zxingcpp
from PIL import Image

from appliance.model.totp import totp_code
from tests.browser.accessibility import violations
from tests.browser.keyboard import follow, is_within, press, reach, write
from tests.browser.phones import PHONE
from tests.browser.portal_world import DESK

PASSWORD = "une menthe fraîche au matin"
HASH = argon2.PasswordHasher(memory_cost=64, parallelism=1, time_cost=1).hash(PASSWORD)


async def scan(page):
    """The secret that an app finds in the QR code on the page."""
    picture = Image.open(io.BytesIO(await page.locator(".pairing-code svg").screenshot()))
    [code] = zxingcpp.read_barcodes(picture.convert("L"))
    return base64.b32decode(parse_qs(urlsplit(code.text).query)["secret"][0])


async def is_sound(page, size):
    """The page is in order, and no wider than the screen."""
    return await violations(page) == [] and await is_within(page, size["width"])


async def give_password(page, name):
    await page.goto("/portal/sign-in")
    await write(page, "name", name)
    await write(page, "password", PASSWORD)
    await page.keyboard.press("Enter")
    await page.locator("[name=code]").wait_for()


def shown(portal, secret):
    """What the app shows now."""
    return totp_code(secret, portal.box.clock.now() // 30_000)


async def add_app(portal, page, size):
    """From the account page to the recovery codes; the secret and the codes."""
    await write(page, "password", PASSWORD, within="form[action$='/second-step']")
    await page.keyboard.press("Enter")
    await page.locator(".pairing-code").wait_for()
    secret = await scan(page)
    key = (await page.inner_text("#app-key")).replace(" ", "")
    assert base64.b32decode(key) == secret
    await write(page, "code", "000000")
    await page.keyboard.press("Enter")
    await page.locator(".problem").wait_for()
    assert await is_sound(page, size)
    assert await scan(page) == secret
    await write(page, "code", shown(portal, secret))
    await page.keyboard.press("Enter")
    await page.locator("#recovery-codes").wait_for()
    assert await is_sound(page, size)
    return secret, await page.locator("#recovery-codes code").all_inner_texts()


async def sign_out(page):
    await reach(page, page.locator(".me summary"))
    await page.keyboard.press("Enter")
    await follow(page, "Se déconnecter", "**/portal/sign-in?**", within=".menu")


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
async def test_an_app_is_added_asked_for_and_replaced_by_a_recovery_code(portal, size):
    page = await portal.desk(viewport=size)
    [(name,)] = await portal.box.rows("SELECT name FROM staff")
    write_rows = portal.box.environment.database.write
    await write_rows(lambda tx: tx.execute("UPDATE staff SET password = :p", {"p": HASH}))

    await page.goto("/portal/account")
    assert await is_sound(page, size)
    secret, codes = await add_app(portal, page, size)
    assert len(codes) == 10
    await follow(page, "Je les ai conservés", "**/portal/account")
    assert "Il reste 10 codes de secours." in await page.inner_text("main")
    assert await is_sound(page, size)
    await sign_out(page)

    portal.box.clock.advance(60)
    await give_password(page, name)
    assert await is_sound(page, size)
    field = page.locator("[name=code]")
    assert await field.get_attribute("autocomplete") == "one-time-code"
    assert await field.get_attribute("inputmode") == "numeric"
    assert await field.evaluate("element => element === document.activeElement")
    await page.keyboard.insert_text("000000")
    await page.keyboard.press("Enter")
    await page.locator(".problem").wait_for()
    assert await is_sound(page, size)
    await write(page, "code", shown(portal, secret))
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/portal/tonight")

    stranger = await portal.stranger("ar", viewport=size)
    await give_password(stranger, name)
    await press(stranger, "استعمال رمز استرجاع")
    await write(stranger, "recovery", codes[0].lower())
    assert await is_sound(stranger, size)
    await stranger.keyboard.press("Enter")
    await stranger.wait_for_url("**/portal/tonight")
    assert portal.complaints == []
