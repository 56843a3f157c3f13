"""Work in a thread of its own that does not keep the process from leaving."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")


async def run_beside(work: Callable[[], T]) -> T:
    """What `work()` returns or raises. A backup that is cut off is none: nobody waits for it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast("T", result))

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as accident:  # noqa: BLE001 - handed on
            error = accident
        with contextlib.suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, name="night", daemon=True).start()
    return await done
