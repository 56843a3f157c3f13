"""One announcement by multicast DNS, for as long as it is true."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address

from zeroconf import Error, IPVersion
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

log = logging.getLogger(__name__)


def describe(
    slug: str, venue: str, addresses: Iterable[str], port: int, *, tls: bool
) -> AsyncServiceInfo:
    """What is announced: the box's name, its addresses and where it answers."""
    kind = "_https._tcp.local." if tls else "_http._tcp.local."
    label = venue.replace(".", " ").encode()[:63].decode("utf-8", "ignore").strip() or slug
    return AsyncServiceInfo(
        kind,
        f"{label}.{kind}",
        addresses=[ip_address(text).packed for text in addresses],
        port=port,
        properties={"path": "/"},
        server=f"{slug.lower()}.local.",
    )


@asynccontextmanager
async def announced(info: AsyncServiceInfo, addresses: Sequence[str]) -> AsyncIterator[None]:
    """Announce on these addresses while the block lasts.

    Without a network the box runs all the same, unannounced.

    Asking whether the name is free takes a second: nothing waits for that.
    """
    try:
        responder = AsyncZeroconf(interfaces=list(addresses), ip_version=IPVersion.All)
    except OSError as error:
        log.warning("the box's name is not announced: %s", error.strerror)
        yield
        return
    task = asyncio.get_running_loop().create_task(_register(responder, info))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await responder.async_unregister_all_services()
        await responder.async_close()


async def _register(responder: AsyncZeroconf, info: AsyncServiceInfo) -> None:
    try:
        # Another box of that name gets it with a number behind it; the host's name stays.
        await responder.async_register_service(info, allow_name_change=True)
    except (Error, OSError) as error:
        log.warning("the box's name is not announced: %s", type(error).__name__)
