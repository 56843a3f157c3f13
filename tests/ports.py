"""Ports that are free, and stay so until whoever asked for them listens there, or does so again."""

import os
import socket
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def kept_port(owner: Any) -> int:
    """A free port that the kernel gives to nobody else as long as `owner` lives."""
    holder = _hold()
    weakref.finalize(owner, os.close, holder.fileno())
    port = int(holder.getsockname()[1])
    holder.detach()
    return port


@contextmanager
def held_port() -> Iterator[int]:
    """The same, as long as the context lasts."""
    with _hold() as holder:
        yield int(holder.getsockname()[1])


def _hold() -> socket.socket:
    """A socket that is bound and never listens: who connects is refused.

    Whoever names the port may listen there, as every server here sets SO_REUSEADDR; but to nobody
    who asks for just any port does the kernel give it.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", 0))
    return holder
