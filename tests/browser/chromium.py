"""One Chromium for all browser tests of a process: starting one takes longer than most tests.

Each test has its own contexts, which share nothing and are closed when it ends. The browser
belongs to the session's event loop, so these tests and their fixtures all run on it.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest_asyncio
from playwright.async_api import Browser, Error, Playwright, async_playwright

T = TypeVar("T")
EXECUTABLE = os.environ.get("CHROMIUM", "/usr/bin/chromium")
# Each window's address bar is a page of its own, and a renderer waits for the next site: without
# both, a page costs a third. This list replaces Playwright's, which therefore comes first.
DISABLED = (
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "MediaRouter", "PaintHolding", "OptimizationHints",
    "ThirdPartyStoragePartitioning", "NetworkTimeServiceQuerying", "PreconnectToSearch",
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "InitialWebUI",
    "SpareRendererForSitePerProcess",
)  # fmt: skip
ARGUMENTS = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update",
             "--autoplay-policy=no-user-gesture-required",
             f"--disable-features={','.join(DISABLED)}"]  # fmt: skip


def browser_fixture(function: Any = None, **options: Any) -> Any:
    """Like `pytest.fixture`, for asynchronous fixtures of browser tests."""
    return pytest_asyncio.fixture(function, loop_scope="session", **options)


class Chromium:
    """The shared browser, and separate browsers for single tests."""

    def __init__(self, playwright: Playwright) -> None:
        self._chromium = playwright.chromium
        self._shared: Browser | None = None

    async def shared(self) -> Browser:
        """Return the shared browser. Start it on first use, and again if it has died."""
        if self._shared is None or not self._shared.is_connected():
            self._shared = await self.launch()
        return self._shared

    async def launch(self, executable: str = EXECUTABLE, **options: Any) -> Browser:
        """Start another browser; the caller closes it."""
        return await _started(
            lambda: self._chromium.launch(executable_path=executable, args=ARGUMENTS, **options)
        )

    async def launch_persistent(self, profile: str, arguments: list[str], **options: Any) -> Any:
        """Start a browser whose profile stays on disk, and return its context."""
        return await _started(
            lambda: self._chromium.launch_persistent_context(
                profile, executable_path=EXECUTABLE, args=[*ARGUMENTS, *arguments], **options
            )
        )

    async def close(self) -> None:
        """Close the shared browser."""
        if self._shared is not None:
            await self._shared.close()


async def _started(start: Callable[[], Awaitable[T]]) -> T:
    """Start a browser; try once more if it times out on a busy machine."""
    try:
        return await start()
    except Error:
        return await start()


@asynccontextmanager
async def running_chromium() -> AsyncIterator[Chromium]:
    """Run Playwright's driver; browsers start on request."""
    async with async_playwright() as playwright:
        chromium = Chromium(playwright)
        try:
            yield chromium
        finally:
            await chromium.close()
