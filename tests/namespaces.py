"""Network namespaces for tests, invisible to the rest of the machine."""

import ctypes
import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

_CLONE_NEWNET = 0x40000000


def ip(*argv: str) -> None:
    """Run `ip`. Raises CalledProcessError if it is not permitted."""
    subprocess.run(["ip", *argv], check=True, capture_output=True)


def within(network: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in this network and return its result. Its sockets stay in the network."""
    with ThreadPoolExecutor(1) as thread:  # each thread has its own namespace
        return thread.submit(_call, network, function, args).result()


def run_in(network: str, resolver: Path) -> list[str]:
    """Return the command prefix that runs a command in this network, with this resolv.conf."""
    mount = f'mount --bind {resolver} /etc/resolv.conf && exec "$@"'
    return ["ip", "netns", "exec", network, "sh", "-c", mount, "sh"]


def _call(network: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    handle = os.open(Path("/run/netns") / network, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"the network {network} is not entered")
    finally:
        os.close(handle)
    return function(*args)


class Venue:
    """A venue's network behind a NAT router: a box and a phone inside, and a stranger outside.

    The router forwards port 443 of its public address to port 8443 of the box, but not for callers
    inside (it has no hairpin). A guest's phone is on mobile data. The stranger has a second
    address, to which webhooks may be sent. As a context manager, it removes everything at the end.
    """

    BOX, PHONE, PUBLIC = "192.168.77.20", "192.168.77.50", "203.0.113.2"
    _GATEWAY, STRANGER, PARTNER = "192.168.77.1", "203.0.113.1", "93.184.216.34"
    _MAST, GUEST = "198.51.100.1", "198.51.100.9"
    _RULES = f"""
        table ip nat {{
            chain out {{ type nat hook postrouting priority 100; oifname "wan" masquerade; }}
            chain in {{ type nat hook prerouting priority -100;
                        iifname "wan" tcp dport 443 dnat to {BOX}:8443; }}
        }}"""

    def __init__(self, name: str) -> None:
        self.box, self.phone, self.stranger = f"{name}b", f"{name}p", f"{name}s"
        self.router, self.guest = f"{name}r", f"{name}g"
        self._made: list[str] = []

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_machine(self, name: str, address: str) -> str:
        """Add a machine inside. Return the name of its network."""
        network = f"{self.box[:-1]}{name}"
        ip("netns", "add", network)
        self._made.append(network)
        ip("-n", network, "link", "set", "dev", "lo", "up")
        self._plug(f"lan{name}", self.router, network)
        ip("-n", self.router, "link", "set", "dev", f"lan{name}", "master", "lan")
        ip("-n", network, "addr", "add", f"{address}/24", "dev", "eth")
        ip("-n", network, "link", "set", "dev", "eth", "up")
        ip("-n", network, "route", "add", "default", "via", self._GATEWAY)
        return network

    def cut_the_line(self) -> None:
        """Disconnect the internet."""
        ip("-n", self.router, "link", "set", "dev", "wan", "down")

    def restore_the_line(self) -> None:
        """Reconnect the internet."""
        ip("-n", self.router, "link", "set", "dev", "wan", "up")
        ip("-n", self.router, "route", "replace", "default", "via", self.STRANGER)

    def close(self) -> None:
        """Remove all networks."""
        while self._made:
            ip("netns", "del", self._made.pop())

    def _build(self) -> None:
        for network in (self.router, self.box, self.phone, self.stranger, self.guest):
            ip("netns", "add", network)
            self._made.append(network)
            ip("-n", network, "link", "set", "dev", "lo", "up")
        ip("-n", self.router, "link", "add", "lan", "type", "bridge")
        for number, network in enumerate((self.box, self.phone)):
            self._plug(f"lan{number}", self.router, network)
            ip("-n", self.router, "link", "set", "dev", f"lan{number}", "master", "lan")
        self._plug("wan", self.router, self.stranger)
        self._plug("mast", self.stranger, self.guest)
        for network, device, address in (
            (self.router, "lan", self._GATEWAY),
            (self.router, "wan", self.PUBLIC),
            (self.box, "eth", self.BOX),
            (self.phone, "eth", self.PHONE),
            (self.stranger, "eth", self.STRANGER),
            (self.stranger, "lo", self.PARTNER),
            (self.stranger, "mast", self._MAST),
            (self.guest, "eth", self.GUEST),
        ):
            ip("-n", network, "addr", "add", f"{address}/24", "dev", device)
            ip("-n", network, "link", "set", "dev", device, "up")
        for network, gateway in (
            (self.box, self._GATEWAY),
            (self.phone, self._GATEWAY),
            (self.router, self.STRANGER),
            (self.guest, self._MAST),
        ):
            ip("-n", network, "route", "add", "default", "via", gateway)
        forward = ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward && exec nft -f -"]
        subprocess.run(
            ["ip", "netns", "exec", self.router, *forward],
            check=True, capture_output=True, input=self._RULES.encode(),
        )  # fmt: skip

    def _plug(self, port: str, near: str, network: str) -> None:
        """Connect `port` in the network `near` to `eth` in the other network."""
        ip("-n", near, "link", "add", "name", port, "type", "veth",
           "peer", "name", "eth", "netns", network)  # fmt: skip
        ip("-n", near, "link", "set", "dev", port, "up")


def may_build_a_venue() -> bool:
    """Return whether this user may create networks and has the programs for it."""
    try:
        with Venue(f"vbtry{os.getpid() % 10**6}"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False
