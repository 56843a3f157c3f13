"""A simulated machine, so that tests have the same result everywhere.

Its clock shows Saturday 21 November 2026, 19:00 in Casablanca, and is synchronised. It has one
network with a default route, a name server that knows no names, and no tz database. It starts no
other program. Only a test marked `process`, `browser`, `network`, `smoke` or `soak` uses the real
machine.
"""

import ctypes.util
import errno
import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, Self

import ifaddr
import pytest

from appliance import clock
from appliance.core import network

NAME, ADDRESS = "box", "10.20.30.40"
NOW = clock.parse_instant("2026-11-21T19:00:00Z")
_OTHERS = ("process", "browser", "network", "smoke", "soak")
_look_up = socket.getaddrinfo
_new_context = ssl.SSLContext.__new__
_NO_CHECK_TIME = 0x200000  # OpenSSL's flag, because it knows only the real clock

# Constants of test modules are computed before any fixture runs.
clock._SYSTEM_ZONES = Path("/no/zoneinfo")


@pytest.fixture(autouse=True)
def machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the test on the simulated machine, unless its mark needs the real one."""
    os.umask(0o022)  # a box of an earlier test has changed it
    if any(request.node.get_closest_marker(name) for name in _OTHERS):
        yield
        return
    with on_this_machine():
        yield


@pytest.fixture
def tls_looks_at_dates(machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let OpenSSL check dates with the real clock. Certificates that ended in 2001 fail anyway."""
    monkeypatch.setattr(ssl.SSLContext, "__new__", _new_context)


@contextmanager
def on_this_machine() -> Iterator[None]:
    """Simulate the machine, for a fixture that several tests share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock.SystemClock, "now", lambda _: NOW)
        patch.setattr(clock, "ctypes", _Kernel())
        patch.setattr(network, "socket", _Routes())
        patch.setattr(ifaddr, "get_adapters", _list_adapters)
        patch.setattr(socket, "gethostname", lambda: NAME)
        patch.setattr(socket, "getaddrinfo", _look_up_numbers)
        patch.setattr(ctypes.util, "find_library", lambda _: None)
        patch.setattr(ssl.SSLContext, "__new__", _make_timeless)
        patch.setattr(subprocess.Popen, "__init__", _refuse)
        yield


class _Kernel:
    """The part of ctypes that `kernel_is_synchronised` uses."""

    c_long, c_int = ctypes.c_long, ctypes.c_int
    byref, addressof, sizeof = ctypes.byref, ctypes.addressof, ctypes.sizeof

    def CDLL(self, _name: None) -> SimpleNamespace:  # noqa: N802 - as ctypes calls it
        return SimpleNamespace(adjtimex=lambda _: 0)


class _Routes:
    """The part of the socket module that core/network.py uses."""

    AF_INET, AF_INET6, SOCK_DGRAM = socket.AF_INET, socket.AF_INET6, socket.SOCK_DGRAM

    def socket(self, family: int, _kind: int) -> "_Probe":
        return _Probe(family)


class _Probe:
    """A UDP socket on this machine, which has no IPv6 besides loopback."""

    def __init__(self, family: int) -> None:
        self._family = family
        self._source = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def fileno(self) -> int:
        raise OSError(errno.ENODEV, "this machine has no adapters to ask")

    def connect(self, address: tuple[str, int]) -> None:
        there = ip_address(address[0])
        if there.is_loopback:
            self._source = str(there) if there.version == 6 else "127.0.0.1"
        elif there.version == 6:
            raise OSError(errno.ENETUNREACH, "no route")
        else:
            self._source = ADDRESS

    def getsockname(self) -> tuple[str, int]:
        return self._source, 0


def _list_adapters(*_: object) -> list[SimpleNamespace]:
    def adapter(name: str, index: int, address: str, prefix: int) -> SimpleNamespace:
        entry = SimpleNamespace(ip=address, network_prefix=prefix)
        return SimpleNamespace(name=name, nice_name=name, index=index, ips=[entry])

    return [adapter("lo", 1, "127.0.0.1", 8), adapter("eth0", 2, ADDRESS, 24)]


def _look_up_numbers(host: Any, *rest: Any, **options: Any) -> Any:
    if host in {"localhost", b"localhost"}:
        host = "127.0.0.1"  # regardless of /etc/hosts
    if host not in {None, ""}:
        try:
            ip_address(host.decode() if isinstance(host, bytes) else host.partition("%")[0])
        except ValueError:
            raise socket.gaierror(socket.EAI_NONAME, "this machine knows no names") from None
    return _look_up(host, *rest, **options)


def _make_timeless(*arguments: Any, **options: Any) -> ssl.SSLContext:
    context = _new_context(*arguments, **options)
    context.verify_flags |= _NO_CHECK_TIME
    return context


def _refuse(*_: object, **__: object) -> NoReturn:
    pytest.fail("a test that starts a program is marked `process`")
