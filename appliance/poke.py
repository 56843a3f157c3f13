"""A poke: how a command tells the running box that it has changed some rows.

A named pipe in the data directory. The box holds its reading end; a command that has committed
writes one byte, which says "look again" and nothing else: what happened is in the rows. Nobody
polls, and a pipe that nobody reads, after a crash or while the box is off, refuses the writer.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

_ENOUGH = 65536  # all that a pipe holds: many pokes are one


def poke(pipe: Path) -> bool:
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
def hear_pokes(pipe: Path, on_poke: Callable[[], None]) -> Iterator[None]:
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
