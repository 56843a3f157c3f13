"""Daemon threads, and the pipe by which a command wakes the running box.

The pipe is a named pipe in the data directory. The box holds its reading end. A command that has
committed writes one byte, which means "look again"; the rows say what changed. Nothing polls. A
pipe without a reader, after a crash or while the box is off, refuses the writer.
"""

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
    """Run `work` in a daemon thread, which does not delay exit. Returns or raises as `work`."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # cancelling the caller does not cancel the work

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed on
            done.set_exception(error)

    threading.Thread(target=run, name="night", daemon=True).start()
    return await asyncio.wrap_future(done)


_ENOUGH = 65536  # the capacity of a pipe: several wake-ups are read as one


def wake_box(pipe: Path) -> bool:
    """Wake the box that reads `pipe`, so that it re-reads its rows. False if none is running."""
    try:
        handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # no pipe, or no reader
        return False
    try:
        os.write(handle, b".")
    except BlockingIOError:  # full of unread wake-ups
        return True
    except OSError:  # the reader closed the pipe just now
        return False
    finally:
        os.close(handle)
    return True


@contextlib.contextmanager
def listen_for_wakeups(pipe: Path, on_poke: Callable[[], None]) -> Iterator[None]:
    """Call `on_poke` in the running loop after each wake-up, or once for several."""
    pipe.unlink(missing_ok=True)  # left by a process that crashed
    os.mkfifo(pipe, 0o600)
    # Opened for reading and writing, it always has a writer and never reaches end of file.
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
