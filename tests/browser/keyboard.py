"""A page as somebody uses it who has no pointer: everything is reached by Tab."""

import re

from playwright.async_api import Locator, Page

MOST_TABS = 150


async def reach(page: Page, target: Locator) -> None:
    """Tab until `target` has the focus; what the keyboard never reaches fails the test."""
    await target.wait_for()
    for _ in range(MOST_TABS):
        if await target.evaluate("element => element === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {target}")


async def write(page: Page, name: str, text: str, within: str = "main") -> None:
    """Write into the field of that name, in place of what stands there."""
    await reach(page, page.locator(f"{within} [name={name}]:visible").first)
    await page.keyboard.press("Control+A")
    await page.keyboard.insert_text(text)


async def press(page: Page, label: str, within: str = "main") -> None:
    """Press, with Enter, the button, the link or the fold that says `label`, and nothing else."""
    said = page.locator(within).locator("button:visible, a:visible, summary:visible")
    wholly = r"\s+".join(re.escape(word) for word in label.split())  # a space may be a narrow one
    await reach(page, said.filter(has_text=re.compile(rf"^\s*{wholly}\s*$")).first)
    await page.keyboard.press("Enter")


async def follow(page: Page, label: str, url: str, within: str = "main") -> None:
    """Press what leads to a page, and wait until it is there; `url` is a pattern."""
    await press(page, label, within)
    await page.wait_for_url(url)


async def enter_room(page: Page, label: str, url: str) -> None:
    """Go to another room of the portal by the bar on top."""
    await follow(page, label, url, within=".areas")


async def is_within(page: Page, width: int) -> bool:
    """Whether nothing is wider than the screen."""
    return int(await page.evaluate("document.documentElement.scrollWidth")) <= width
