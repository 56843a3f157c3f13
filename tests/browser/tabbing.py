"""A page as somebody uses it who tabs along until the name of what they want is read to them."""

import re

MOST_TABS = 80
_FOCUSED = """() => {
  const at = document.activeElement;
  const label = at.labels?.[0]?.innerText ?? at.getAttribute('aria-label') ?? at.innerText ?? '';
  return label.trim().replace(/\\s+/g, ' ');
}"""


async def tab_to(page, name):
    """Reach what is called `name` as somebody without a pointer does."""
    seen = []
    for _ in range(MOST_TABS):
        await page.keyboard.press("Tab")
        seen.append(await page.evaluate(_FOCUSED))
        if seen[-1].startswith(name):
            return
    raise AssertionError(f"no way to {name!r} by Tab: {seen}")


async def press(page, name, key="Enter"):
    """Reach it and press."""
    await tab_to(page, name)
    await page.keyboard.press(key)


async def write(page, text):
    """Type into the field that has the focus when the page opens."""
    await page.locator("main input:focus").wait_for()
    await page.keyboard.type(text)


async def follow(page, name, path):
    """Press what leads to a page whose address has `path`, and wait for it."""
    await tab_to(page, name)
    async with page.expect_navigation(url=re.compile(path)):
        await page.keyboard.press("Enter")
