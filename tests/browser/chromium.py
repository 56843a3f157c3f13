"""One Chromium for all browser tests of a process: to start one takes longer than most of them.

Each test has contexts of its own, which share nothing; they are closed when it ends. As the
browser belongs to an event loop, these tests and their fixtures all run on the session's.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest_asyncio
from playwright.async_api import Browser, Error, Playwright, async_playwright

T = TypeVar("T")
EXECUTABLE = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update",
             "--autoplay-policy=no-user-gesture-required"]  # fmt: skip


def browser_fixture(function: Any = None, **options: Any) -> Any:
    """As `pytest.fixture`, for what is asynchronous and used by browser tests."""
    return pytest_asyncio.fixture(function, loop_scope="session", **options)


class Chromium:
    """The shared browser, and others that a test has for itself."""

    def __init__(self, playwright: Playwright) -> None:
        self._chromium = playwright.chromium
        self._shared: Browser | None = None

    async def shared(self) -> Browser:
        """The one that is running; started on first use, and anew should it have died."""
        if self._shared is None or not self._shared.is_connected():
            self._shared = await self.launch()
        return self._shared

    async def launch(self, **options: Any) -> Browser:
        """One more; whoever asked for it closes it."""
        return await _started(
            lambda: self._chromium.launch(executable_path=EXECUTABLE, args=ARGUMENTS, **options)
        )

    async def launch_persistent(self, profile: str, arguments: list[str], **options: Any) -> Any:
        """A context with a browser of its own, whose profile outlives it."""
        return await _started(
            lambda: self._chromium.launch_persistent_context(
                profile, executable_path=EXECUTABLE, args=[*ARGUMENTS, *arguments], **options
            )
        )

    async def close(self) -> None:
        """End the shared one."""
        if self._shared is not None:
            await self._shared.close()


async def _started(start: Callable[[], Awaitable[T]]) -> T:
    """What starts; once more if need be: one that is held up at its start may not come up."""
    try:
        return await start()
    except Error:
        return await start()


@asynccontextmanager
async def running_chromium() -> AsyncIterator[Chromium]:
    """Playwright's driver, and browsers as they are asked for."""
    async with async_playwright() as playwright:
        chromium = Chromium(playwright)
        try:
            yield chromium
        finally:
            await chromium.close()
