"""Dialling: to whichever of several addresses answers, or the failure that says most."""

import asyncio
import errno
import socket
from collections.abc import Sequence
from ipaddress import IPv6Address
from typing import cast

import aiohappyeyeballs

from appliance.webhooks.addresses import IpAddress

_NEXT_SECONDS = 0.25  # after which the next address is tried beside the one before

# From the receiver's own word to what this machine alone says, which counts only when nothing
# else was heard: that it has no way to either kind of address, or knows only one kind.
_FROM_OUTSIDE = (errno.ECONNREFUSED, errno.ECONNRESET, errno.ETIMEDOUT, errno.EHOSTUNREACH)
_NO_WAY = (errno.ENETUNREACH, errno.ENETDOWN)
_NOT_MY_KIND = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


async def connect_directly(addresses: Sequence[IpAddress], port: int) -> socket.socket:
    """A TCP connection to whichever answers first; OSError of the most telling failure."""
    infos = [
        (
            socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET,
            socket.SOCK_STREAM,
            socket.IPPROTO_TCP,
            "",
            (str(address), port),
        )
        for address in addresses
    ]
    witness = _Witness()
    try:
        return await aiohappyeyeballs.start_connection(
            infos,
            happy_eyeballs_delay=_NEXT_SECONDS,
            loop=cast("asyncio.AbstractEventLoop", witness),
            socket_factory=witness.make_socket,
        )
    except OSError as error:
        raise min(witness.failures, key=_distance, default=error) from None


def _distance(failure: OSError) -> int:
    """How far from the receiver it arose."""
    number = failure.errno or 0
    if number in _FROM_OUTSIDE:
        return _FROM_OUTSIDE.index(number)
    others = len(_FROM_OUTSIDE)
    return others + (1 if number in _NO_WAY else 2 if number in _NOT_MY_KIND else 0)


class _Witness:
    """All of an event loop that aiohappyeyeballs needs.

    It keeps each failure, of which the library would only make one sentence without a number.
    """

    def __init__(self) -> None:
        self.failures: list[OSError] = []

    async def sock_connect(self, sock: socket.socket, address: tuple[str, int]) -> None:
        try:
            await asyncio.get_running_loop().sock_connect(sock, address)
        except OSError as failure:
            self.failures.append(failure)
            raise

    def make_socket(self, info: aiohappyeyeballs.AddrInfoType) -> socket.socket:
        family, type_, protocol, _, _ = info
        try:
            return socket.socket(family, type_, protocol)
        except OSError as failure:
            self.failures.append(failure)
            raise
