"""Operate a page by keyboard alone. Every control is reached by Tab."""

import re

from playwright.async_api import Locator, Page

MOST_TABS = 150


async def reach(page: Page, target: Locator) -> None:
    """Press Tab until `target` has the focus; fail the test if it never gets it."""
    await target.wait_for()
    for _ in range(MOST_TABS):
        if await target.evaluate("element => element === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {target}")


async def write(page: Page, name: str, text: str, within: str = "main") -> None:
    """Replace the value of the field with that name."""
    await reach(page, page.locator(f"{within} [name={name}]:visible").first)
    await page.keyboard.press("Control+A")
    await page.keyboard.insert_text(text)


async def press(page: Page, label: str, within: str = "main") -> None:
    """Press Enter on the button, link or summary whose whole text is `label`."""
    said = page.locator(within).locator("button:visible, a:visible, summary:visible")
    wholly = r"\s+".join(re.escape(word) for word in label.split())  # spaces may be narrow ones
    await reach(page, said.filter(has_text=re.compile(rf"^\s*{wholly}\s*$")).first)
    await page.keyboard.press("Enter")


async def follow(page: Page, label: str, url: str, within: str = "main") -> None:
    """Press a control that opens a page, and wait for the page; `url` is a pattern."""
    await press(page, label, within)
    await page.wait_for_url(url)


async def enter_room(page: Page, label: str, url: str) -> None:
    """Open another section of the portal by the navigation."""
    await follow(page, label, url, within=".areas")


async def is_within(page: Page, width: int) -> bool:
    """Return whether nothing is wider than the screen."""
    return int(await page.evaluate("document.documentElement.scrollWidth")) <= width
