"""Wait for a condition up to ten seconds, and name it if it does not occur.

Pauses are counted instead of seconds, because each pause takes longer on a busy machine.
"""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

SECONDS = 10.0
_PAUSE = 0.005


@asynccontextmanager
async def within(what: str, seconds: float = SECONDS) -> AsyncIterator[None]:
    """Fail if the block takes longer. `what` names what it waits for."""
    try:
        async with asyncio.timeout(None) as limit:
            counting = asyncio.create_task(_count(seconds, limit))
            try:
                yield
            finally:
                counting.cancel()
    except TimeoutError:
        if not limit.expired():
            raise
        raise AssertionError(f"waited in vain for: {what}") from None


async def _count(seconds: float, limit: asyncio.Timeout) -> None:
    for _ in range(round(seconds / (10 * _PAUSE))):
        await asyncio.sleep(10 * _PAUSE)
    limit.reschedule(asyncio.get_running_loop().time())


async def until(
    condition: Callable[[], object | Awaitable[object]], what: str = "", seconds: float = SECONDS
) -> None:
    """Wait until `condition` is true. If `what` is empty, the source of `condition` says it."""
    for _ in range(round(seconds / _PAUSE)):
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        await asyncio.sleep(_PAUSE)
    raise AssertionError(f"waited in vain for: {what or inspect.getsource(condition).strip()}")


def until_true(condition: Callable[[], object], what: str = "", seconds: float = SECONDS) -> None:
    """Wait like `until`, without an event loop."""
    for _ in range(round(seconds / _PAUSE)):
        if condition():
            return
        time.sleep(_PAUSE)
    raise AssertionError(f"waited in vain for: {what or inspect.getsource(condition).strip()}")
