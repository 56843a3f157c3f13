"""The portal in a real browser: a running box, and staff who are signed in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import argon2
from playwright.async_api import Browser, Page

from appliance.database.connection import Transaction
from appliance.staff.accounts import create_staff
from appliance.staff.model import set_password
from appliance.staff.sign_in import start_session
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
        self.secret = ""  # cookie of the latest session

    async def desk(self, role: str = "owner", language: str = "fr", **options: Any) -> Page:
        """Return an empty page of a browser that is signed in."""
        self.secret = await self.box.environment.database.write(_sign_in, role, language)
        page = await self.stranger(language, **options)
        # Browsers treat loopback like https: they send Secure cookies.
        cookie = {"name": "__Host-venuebox-session", "value": self.secret, "secure": True}
        await page.context.add_cookies([{**cookie, "url": "https://127.0.0.1/"}])
        return page

    async def person(self, role: str, password: str) -> str:
        """Create a staff member with this password; return the name."""
        hashed = argon2.PasswordHasher(memory_cost=64, parallelism=1, time_cost=1).hash(password)

        def create(tx: Transaction) -> str:
            name = f"Yasmine {tx.new_id()[-6:]}"
            set_password(tx, create_staff(tx, name, role).staff_id, hashed)
            return name

        return await self.box.environment.database.write(create)

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


def _sign_in(tx: Transaction, role: str, language: str) -> str:
    staff_id = create_staff(tx, f"Yasmine {tx.new_id()[-6:]}", role).staff_id
    set_password(tx, staff_id, "none that fits")
    tx.execute(
        "UPDATE staff SET language = :language WHERE id = :id",
        {"language": language, "id": staff_id},
    )
    return start_session(tx, staff_id, None, "Chromium, Linux").secret
