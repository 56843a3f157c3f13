"""Where the box is found: its address, as the network of the house comes, goes and changes.

After a power cut the box is up before the router: it has no address yet when it starts.
"""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from appliance.accidents import log_accident
from appliance.alone import is_alone
from appliance.box import Box
from appliance.data_directory import DataDirectory
from appliance.tls.names import own_addresses
from appliance.webhooks.network import Network

log = logging.getLogger(__name__)

T = TypeVar("T")
ANY = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on
_ALONE = "127.0.0.1"
_SETTLE_SECONDS = 2.0  # a network that comes up says so many times
_AGAIN_SECONDS, _LATEST_SECONDS = 60.0, 3600.0


def find_address(host: str, port: int, remembered: str | None) -> str:
    """Where other machines find the box, over plain http.

    A box without a network says where it was last: its router mostly gives it that address
    again. Only one that never had any names itself by the loopback address.
    """
    if host not in ANY:
        return f"http://{in_url(host)}:{port}"
    found = _address_that_leads_out()
    if found is None and remembered is not None and urlsplit(remembered).port == port:
        return remembered
    return f"http://{found or _ALONE}:{port}"


def find_local_address(host: str, port: int) -> str:
    """Where this machine finds the box in the open; nothing where it listens at one address.

    A connection to that is none within this machine, and a password may not travel on it.
    """
    if host in ANY:
        return f"http://{_ALONE}:{port}"
    return f"http://{in_url(host)}:{port}" if is_alone(host) else ""


def in_url(host: str) -> str:
    """A host as a URL writes it."""
    return f"[{host}]" if ":" in host else host


async def follow(
    network: Network, look: Callable[[], T], heard: asyncio.Event | None = None
) -> AsyncGenerator[T, None]:
    """What `look` finds now, and each time that it is something else.

    It is asked when the network says so, and when the caller sets `heard`.
    """
    told = asyncio.Event() if heard is None else heard
    stop = network.watch(told.set)
    known: T | None = None
    try:
        while True:
            told.clear()
            found = look()
            if found != known:
                known = found
                yield found
            await told.wait()
            await asyncio.sleep(_SETTLE_SECONDS)
    finally:
        stop()


@asynccontextmanager
async def moving(
    box: Box, directory: DataDirectory, host: str, port: int, network: Network
) -> AsyncIterator[None]:
    """While the block lasts, links and certificate follow the machine's addresses."""
    if host not in ANY:
        yield
        return
    task = asyncio.get_running_loop().create_task(
        _move(box, directory, host, port, network), name="moving"
    )
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def keep_at(what: str, work: Callable[[], Awaitable[None]]) -> None:
    """Until cancelled: an accident ends `work` for a minute, and one that stays for an hour."""
    rest = 0.0
    while True:
        begun = time.monotonic()
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - it is tried again
            log_accident(what, error)
        is_new = time.monotonic() - begun > rest
        rest = _AGAIN_SECONDS if is_new else max(_AGAIN_SECONDS, min(2 * rest, _LATEST_SECONDS))
        await asyncio.sleep(rest)


async def _move(box: Box, directory: DataDirectory, host: str, port: int, network: Network) -> None:
    await keep_at(
        "following the box's addresses",
        partial(_move_each_time, box, directory, host, port, network),
    )


async def _move_each_time(
    box: Box, directory: DataDirectory, host: str, port: int, network: Network
) -> None:
    is_first = True
    async with aclosing(follow(network, own_addresses)) as changes:
        async for addresses in changes:
            address = find_address(host, port, directory.remembered_address())
            if is_first and box.live.links.address == address:
                is_first = False
                continue
            is_first = False
            log.info("the box's addresses are now %s", ", ".join(addresses) or "none")
            box.move(address)
            box.look_again()  # the certificate names addresses, too
            directory.remember_address(address)


def _address_that_leads_out() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses a route
        except OSError:
            return None
        found = str(probe.getsockname()[0])
    return None if found == _ALONE else found
