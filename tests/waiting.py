"""Waiting for what must come: for ten seconds at most, and then with a sentence that says for what.

Only the machine's load may make a test wait, so what takes longer does not come.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

SECONDS = 10.0


@asynccontextmanager
async def within(what: str, seconds: float = SECONDS) -> AsyncIterator[None]:
    """Fail if the block takes longer. `what` is what it waits for."""
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise AssertionError(f"{what} did not come within {seconds:g} s") from None


async def until(
    condition: Callable[[], object | Awaitable[object]], what: str = "", seconds: float = SECONDS
) -> None:
    """Wait until `condition` is true. If `what` is empty, its source says what is waited for."""
    async with within(what or inspect.getsource(condition).strip(), seconds):
        while True:
            found = condition()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(0.005)
