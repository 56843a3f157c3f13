"""Daemon threads, and the pipe by which a command wakes the running box."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
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


_ENOUGH = 65536  # all that a pipe holds: many pokes are one


def wake_box(pipe: Path) -> bool:
    """Tell the box that reads `pipe` to look at its rows again; False when none is running."""
    try:
        handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # no pipe, or no reader
        return False
    try:
        os.write(handle, b".")
    except BlockingIOError:  # full of pokes that it has yet to hear
        return True
    except OSError:  # it left in this moment
        return False
    finally:
        os.close(handle)
    return True


@contextlib.contextmanager
def listen_for_wakeups(pipe: Path, on_poke: Callable[[], None]) -> Iterator[None]:
    """Call `on_poke` in the running loop after each poke, or once for several."""
    pipe.unlink(missing_ok=True)  # of a process that crashed
    os.mkfifo(pipe, 0o600)
    # Open for both, it never ends: there is always a writer.
    handle = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    loop = asyncio.get_running_loop()

    def hear() -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(handle, _ENOUGH)
        on_poke()

    loop.add_reader(handle, hear)
    try:
        yield
    finally:
        loop.remove_reader(handle)
        pipe.unlink(missing_ok=True)
        os.close(handle)
