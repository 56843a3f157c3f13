"""What the machine itself knows of its network: whether a way leads out, and when that changes."""

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol

# Addresses for documentation: nobody has them, and asking for the way sends nothing.
_ANYWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_LINK, _IPV4_ADDRESS, _IPV4_ROUTE, _IPV6_ROUTE = 0x1, 0x10, 0x40, 0x400


class Network(Protocol):
    """The machine's own network."""

    def has_way_out(self) -> bool:
        """Whether any route leads out of the house, as far as the machine knows."""
        ...

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back in the loop when links or routes change; the result stops that."""
        ...


class SystemNetwork:
    """The kernel's routes, and on Linux its messages about them."""

    def has_way_out(self) -> bool:
        """As promised: the kernel is asked for a route, and no packet leaves."""
        return any(map(_has_route, _ANYWHERE))

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """As promised; where there is no rtnetlink nobody calls."""
        if not hasattr(socket, "AF_NETLINK"):
            return _nothing
        try:
            messages = socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE
            )
        except OSError:
            return _nothing
        loop = asyncio.get_running_loop()

        def on_message() -> None:
            try:
                while messages.recv(65536):
                    pass
            except OSError:  # there are no more, or there were too many to keep
                pass
            callback()

        def stop() -> None:
            loop.remove_reader(messages.fileno())
            messages.close()

        try:
            messages.bind((0, _LINK | _IPV4_ADDRESS | _IPV4_ROUTE | _IPV6_ROUTE))
            loop.add_reader(messages.fileno(), on_message)
        except (OSError, NotImplementedError):
            messages.close()
            return _nothing
        return stop


def _has_route(destination: tuple[int, str]) -> bool:
    family, address = destination
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asker:
            asker.connect((address, 9))
    except OSError:
        return False
    return True


def _nothing() -> None:
    """Nothing is watched, nothing is to be stopped."""
