"""The first start and the rooms of the house on an owner's phone: nothing needs a wider screen.

A desk and a tablet go the whole way in test_first_journey.py.
"""

import re
from urllib.parse import urlsplit

from tests.browser.accessibility import violations
from tests.browser.keyboard import is_within, press, write
from tests.browser.phones import PHONE
from tests.web.processes import Serving

PASSWORD = "le thé est servi à minuit"


async def test_an_empty_directory_becomes_a_venue_on_a_phone_with_the_keyboard_alone(
    tmp_path, browser
):
    with Serving("--data", str(tmp_path / "box"), "--host", "127.0.0.1", "--port", "0") as serving:
        link = next(m[0] for line in serving.lines if (m := re.search(r"http\S+#\S+", line)))
        page = await browser.new_page(viewport=PHONE, locale="en-GB")
        page.set_default_timeout(60_000)
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)

        await page.goto(link)
        assert await violations(page) == []
        await write(page, "name", "Yasmine")
        await write(page, "password", PASSWORD)
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/portal/setup/venue#begin")
        assert await violations(page) == []
        await write(page, "name", "Riad Atlas")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/portal/setup/tables*")
        await write(page, "tables", "T1-T12, 2-4")
        await press(page, "Look at them first")
        await page.get_by_text("12 tables were understood").wait_for()
        assert await violations(page) == []
        await press(page, "Add them and go on")
        await page.wait_for_url("**/portal/setup/slots*")
        assert await violations(page) == []
        await press(page, "Add")
        await press(page, "These are all: go on")
        for step in ("mail", "address", "phone"):
            await page.wait_for_url(f"**/portal/setup/{step}*")
            assert await violations(page) == []
            await press(page, "Later: go to the next step")
        await page.wait_for_url("**/portal/setup/ready")
        for path in ("setup/ready", "people", "people/log", "account", "box", "tonight"):
            await page.goto(f"{serving.address}/portal/{path}")
            assert await violations(page) == [], path
            assert await is_within(page, PHONE["width"]), path
        assert complaints == []
    assert urlsplit(link).hostname == "127.0.0.1"
