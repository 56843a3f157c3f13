"""Free ports that stay reserved while a test starts and restarts servers on them."""

import os
import socket
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def kept_port(owner: Any) -> int:
    """Return a port that the kernel gives to no other process while `owner` exists."""
    holder = _hold()
    weakref.finalize(owner, os.close, holder.fileno())
    port = int(holder.getsockname()[1])
    holder.detach()
    return port


@contextmanager
def held_port() -> Iterator[int]:
    """Yield a port that the kernel gives to no other process until the context ends."""
    with _hold() as holder:
        yield int(holder.getsockname()[1])


def _hold() -> socket.socket:
    """Return a bound socket that never listens, so connections to it are refused.

    Servers with SO_REUSEADDR, which all servers here set, can listen on the same port. The kernel
    does not choose this port for sockets that request any free port.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", 0))
    return holder
