"""Networks of the kernel that a test has for itself: nobody else on this machine hears of them.

A cable with one end on the machine itself would give it an address for a while, which other tests
that run beside would take for one of the house, and would wake whatever watches the network.
"""

import ctypes
import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

_CLONE_NEWNET = 0x40000000


def ip(*argv: str) -> None:
    """Run `ip`; CalledProcessError where it is refused."""
    subprocess.run(["ip", *argv], check=True, capture_output=True)


def may_make_namespaces() -> bool:
    """Whether this user may."""
    try:
        with Cable(f"vbtry{os.getpid() % 10**6}") as cable:
            return bool(cable.within(lambda: True))
    except (OSError, subprocess.CalledProcessError):
        return False


class Cable:
    """A cable between two networks, `outside` and `inside`, with nothing plugged in yet.

    Its ends are `near` and `far`. Used as a context, or closed, both networks are gone.
    """

    def __init__(self, name: str) -> None:
        self.outside, self.inside = f"{name}o", f"{name}i"
        self._made: list[str] = []
        try:
            for network in (self.outside, self.inside):
                ip("netns", "add", network)
                self._made.append(network)
                ip("-n", network, "link", "set", "dev", "lo", "up")
            ip("-n", self.outside, "link", "add", "name", "near", "type", "veth",
               "peer", "name", "far", "netns", self.inside)  # fmt: skip
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def plug_in(self, outside: str, inside: str) -> None:
        """Give each end its address, and let it be up."""
        for network, end, address in (
            (self.outside, "near", outside),
            (self.inside, "far", inside),
        ):
            ip("-n", network, "addr", "add", f"{address}/24", "dev", end)
            ip("-n", network, "link", "set", "dev", end, "up")

    def set(self, state: str) -> None:
        """The end outside is `up` or `down`."""
        ip("-n", self.outside, "link", "set", "dev", "near", state)

    def within(self, function: Callable[..., Any], *args: Any) -> Any:
        """What the function returns where it is called outside; its sockets stay there."""
        with ThreadPoolExecutor(1) as thread:  # a namespace is a thread's
            return thread.submit(self._call, function, args).result()

    def close(self) -> None:
        """No cable, no networks."""
        while self._made:
            ip("netns", "del", self._made.pop())

    def _call(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        handle = os.open(Path("/run/netns") / self.outside, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"the network {self.outside} is not entered")
        finally:
            os.close(handle)
        return function(*args)
