"""A conflict about somebody whom the box cannot tell, on the door's page."""

import os
from pathlib import Path

import pytest

from tests.browser.accessibility import violations
from tests.browser.portal_world import DESK

SHOTS = os.environ.get("SHOTS")
SYNC = """(scan) => fetch("/terminal/v1/sync", {
  method: "POST", headers: {"Content-Type": "application/json"},
  body: JSON.stringify({ scans: [scan] }),
}).then((answer) => answer.status)"""


@pytest.mark.parametrize(
    ("language", "told"),
    [("fr", "comptés nulle part"), ("en", "counted nowhere"), ("ar", "يُحتسبوا")],
)
async def test_it_says_whom_to_ask_and_links_to_nobody(portal, language, told):
    phone = await portal.box.phone("Porte 1")
    scan = {"scanId": "one", "code": "Zoubida", "shown": "checked_in",
            "at": "2026-11-21T18:50:00Z"}  # fmt: skip
    assert await phone.page.evaluate(SYNC, scan) == 200
    page = await portal.desk(role="manager", language=language, viewport=DESK)

    await page.goto("/portal/door")

    assert told in await page.inner_text(".conflict")
    assert await page.locator(".conflict a").count() == 0
    assert await violations(page) == []
    if SHOTS:
        await page.screenshot(path=Path(SHOTS) / f"conflict-of-nobody-{language}.png")
