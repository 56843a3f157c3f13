"""The portal in a real browser: a running box, and staff who are signed in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page

from tests.app.portal.people import HASH, sign_in
from tests.browser.chromium import Chromium
from tests.browser.door_world import DoorWorld, door_world

DESK = {"width": 1280, "height": 800}
TABLET = {"width": 768, "height": 1024}


class PortalWorld:
    """A furnished box and a browser of its staff."""

    def __init__(self, box: DoorWorld, browser: Browser) -> None:
        self.box = box
        self.browser = browser
        self.complaints: list[str] = []
        self.secret = ""  # cookie of the latest session, for `make bench`
        self._numbers = count(1)

    @property
    def session_cookie(self) -> str:
        """The name of the cookie that holds the session."""
        return f"__Host-venuebox-session-{self.box.url.rpartition(':')[2]}"

    async def desk(self, role: str = "owner", language: str = "fr", **options: Any) -> Page:
        """Return an empty page of a browser that is signed in."""
        name = f"Yasmine {next(self._numbers)}"
        _, session = await self.box.environment.database.write(sign_in, name, role, language)
        self.secret = session.secret
        page = await self.stranger(language, **options)
        # Browsers treat loopback like https: they send Secure cookies.
        cookie = {"name": self.session_cookie, "value": self.secret, "secure": True}
        await page.context.add_cookies([{**cookie, "url": "https://127.0.0.1/"}])
        return page

    async def set_passwords(self) -> None:
        """Make PASSWORD the password of everybody."""
        await self.box.environment.database.write(
            lambda tx: tx.execute("UPDATE staff SET password = :hash", {"hash": HASH})
        )

    async def stranger(self, language: str = "fr", **options: Any) -> Page:
        """Return a page of a separate browser that is not signed in."""
        context = await self.browser.new_context(
            **{
                "viewport": DESK,
                "locale": {"fr": "fr-MA", "en": "en-GB", "ar": "ar-MA"}[language],
                "base_url": self.box.url,
                **options,
            }
        )
        page = await context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._listen)
        return page

    def _listen(self, message: Any) -> None:
        # The browser logs 4xx answers as errors, although the page shows them.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)


@asynccontextmanager
async def portal_world(
    directory: Path, clock: Any, settings: Any, chromium: Chromium, browser: Browser
) -> AsyncIterator[PortalWorld]:
    """Run a world."""
    async with door_world(directory, clock, settings, chromium) as box:
        yield PortalWorld(box, browser)
