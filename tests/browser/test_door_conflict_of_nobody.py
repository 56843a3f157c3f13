"""A conflict about somebody whom the box cannot tell, on the phones at the door."""

import os
from pathlib import Path

import pytest

from tests.browser.accessibility import violations
from tests.browser.test_portal_conflict_of_nobody import SYNC

SHOTS = os.environ.get("SHOTS")


@pytest.mark.parametrize(
    ("locale", "told"),
    [("fr-MA", "Demandez qui"), ("en-GB", "Ask who it was"), ("ar-MA", "اسألوا من كان")],
)
async def test_the_phones_say_where_it_was_and_count_nobody(door, locale, told):
    phone = await door.phone("Porte 1", locale=locale)
    scan = {"scanId": "one", "code": "Zoubida", "shown": "checked_in",
            "at": "2026-11-21T18:50:00Z"}  # fmt: skip

    assert await phone.page.evaluate(SYNC, scan) == 200

    await phone.page.wait_for_selector("#conflict[open]", timeout=60_000)
    text = await phone.page.inner_text("#conflict-text")
    assert told in text
    assert "Porte 1" in text
    assert await phone.page.inner_text("#conflict-count") == ""
    assert await violations(phone.page) == []
    if SHOTS:
        await phone.page.screenshot(path=Path(SHOTS) / f"door-conflict-of-nobody-{locale}.png")
