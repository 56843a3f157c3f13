"""One at a time: a lock on a folder. It is the kernel's and ends with who holds it, however."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.errors import Trouble

_LOOK_SECONDS = 0.1


@contextmanager
def alone(folder: Path, patience: float, what: str) -> Iterator[None]:
    """Wait, up to `patience` seconds, until nobody else is alone with `folder`.

    Another thread of this process counts as another. Trouble says that `what` does not end.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + patience
        while not _is_held(handle):
            if time.monotonic() > until:
                raise Trouble(f"{what} has not ended for {patience:.0f} seconds: try again later")
            time.sleep(_LOOK_SECONDS)
        yield
    finally:
        os.close(handle)


def _is_held(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
