"""A browser with a guest page, for the tests of this folder."""

import io

from PIL import Image
from playwright.async_api import Browser, Page

PHONE, DESKTOP = (360, 640), (1280, 800)


async def a_guests_page(browser: Browser, size=PHONE, locale="fr-MA", **options) -> Page:
    """A page in a new profile; `complaints` collects its errors, `addresses` its requests."""
    width, height = size
    context = await browser.new_context(
        viewport={"width": width, "height": height}, locale=locale, **options
    )
    page = await context.new_page()
    page.complaints, page.addresses = [], []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: page.addresses.append(request.url))
    return page


async def picture(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(await page.screenshot(full_page=True))).convert("L")
