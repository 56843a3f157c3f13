"""What the machine itself knows of its network: whether a way leads out."""

import socket
from typing import Protocol

# Addresses for documentation: nobody has them, and asking for the way sends nothing.
_ANYWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


class Network(Protocol):
    """The machine's own network."""

    def has_way_out(self) -> bool:
        """Whether any route leads out of the venue's network, as far as the machine knows."""
        ...


class SystemNetwork:
    """The kernel's routes."""

    def has_way_out(self) -> bool:
        """As promised: the kernel is asked for a route, and no packet leaves."""
        return any(_has_route(family, address) for family, address in _ANYWHERE)


def _has_route(family: int, address: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asker:
            asker.connect((address, 9))
    except OSError:
        return False
    return True
