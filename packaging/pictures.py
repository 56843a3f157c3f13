"""Take the screenshots for the README from the demo. `make pictures` runs this script.

It writes three PNG files of at most 60 kB each to docs/pictures. It needs Chromium at
/usr/bin/chromium, or at the path in the environment variable CHROMIUM.
"""

import asyncio
import io
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
LIMIT = 60_000  # maximum size of a picture in bytes, so that the README loads fast
COLOURS = (256, 128, 64, 32)
PHONE = {"width": 360, "height": 640}
DESK = {"width": 1200, "height": 715}
WIDTHS = {"door": 540, "guest": 540, "portal": 1200}  # widths of the PNG files in pixels
_COME = """async () => {
  const evening = await (await fetch("/terminal/v1/evening")).json();
  const others = evening.items.filter((guest) => !guest.customerFirstName.startsWith("Salma"));
  for (const [n, guest] of others.slice(0, 3).entries())
    await fetch("/terminal/v1/check-ins", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ scanId: `picture-${n}`, reservationId: guest.id, arrivals: n + 2 }),
    });
}"""


@contextmanager
def demo() -> Iterator[dict[str, str]]:
    """Run the demo on a free port. Yield the links that it prints, by their labels."""
    program = Path(sys.executable).with_name("venuebox")
    argv = [str(program), "serve", "--demo", "--port", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT) as box:
        assert box.stdout is not None
        links = {}
        for line in box.stdout:
            found = re.match(r" +(.+?) {2,}(https?://\S+)", line)
            if found:
                links[found[1]] = found[2]
            if line.startswith("ready "):
                break
        try:
            yield links
        finally:
            box.terminate()


async def take(browser: Browser, links: dict[str, str]) -> None:
    """Take the three pictures: a guest's pass, its green verdict, and the portal's evening."""
    phone = await browser.new_context(
        viewport=PHONE, device_scale_factor=1.5, locale="en-GB", has_touch=True
    )
    guest = await phone.new_page()
    await guest.goto(links["a guest's link"])
    code = await guest.locator("[data-pass]").first.get_attribute("data-pass")
    await keep(guest, "guest")

    door = await phone.new_page()
    await door.goto(links["door, pair a phone"])
    await door.click("#pair-form button[type=submit]")
    await door.wait_for_selector("body[data-box=up]")
    await door.evaluate(_COME)
    await door.click("#open-code")
    await door.fill("#code", code or "")
    await door.click("#code-go")
    await door.wait_for_selector("#verdict[open][data-result=checked_in]")
    await door.wait_for_timeout(600)  # the animation must have ended
    await keep(door, "door")

    desk = await browser.new_context(viewport=DESK, locale="en-GB")
    await keep(await tonight(desk, links["sign in"]), "portal")


async def tonight(desk: BrowserContext, link: str) -> Page:
    """Accept the owner's invitation, sign in, and return the portal's evening page in English."""
    page, password = await desk.new_page(), secrets.token_urlsafe()
    await page.goto(link)
    await fill_in(page, password=password)
    await page.goto(re.sub(r"/portal/.*", "/portal/sign-in", link))
    await fill_in(page, name="Yasmine", password=password)
    await page.goto(re.sub(r"/portal/.*", "/portal/account", link))
    async with page.expect_navigation():
        await page.click("main button[name=language][value=en]")
    await page.goto(re.sub(r"/portal/.*", "/portal/tonight", link))
    await page.wait_for_load_state("networkidle")
    return page


async def fill_in(page: Page, **fields: str) -> None:
    """Fill in the page's form, submit it, and wait for the next page."""
    for name, value in fields.items():
        await page.fill(f"input[name={name}]", value)
    async with page.expect_navigation():
        await page.click("main button[type=submit]")


async def keep(page: Page, name: str) -> None:
    """Write a screenshot with as many colours as the size limit allows.

    Raises SystemExit if the file is too large even with the fewest colours.
    """
    await page.evaluate("document.fonts.ready.then(() => true)")
    shot = Image.open(io.BytesIO(await page.screenshot())).convert("RGB")
    shot = shot.resize((WIDTHS[name], round(shot.height * WIDTHS[name] / shot.width)))
    for colours in COLOURS:
        file = io.BytesIO()
        shot.quantize(colours).save(file, "PNG", optimize=True)
        if file.tell() <= LIMIT:
            break
    else:
        raise SystemExit(f"{name}.png is too large: {file.tell()} bytes, at most {LIMIT} allowed")
    (PICTURES / f"{name}.png").write_bytes(file.getvalue())
    print(f"docs/pictures/{name}.png: {file.tell() // 1000} kB, {colours} colours")


async def main() -> None:
    """Start the demo and a browser, and take the pictures."""
    executable = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with demo() as links:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=executable, args=["--no-sandbox"]
            )
            await take(browser, links)
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
