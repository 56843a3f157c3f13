"""Run blocking work in a daemon thread."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def run_beside(work: Callable[[], T]) -> T:
    """What `work()` returns or raises. A backup that is cut off is none: nobody waits for it."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # a caller that leaves does not cancel the work

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed on
            done.set_exception(error)

    threading.Thread(target=run, name="night", daemon=True).start()
    return await asyncio.wrap_future(done)
