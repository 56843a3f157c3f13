"""`<slug>.local` and `_https._tcp`, told to the house by multicast DNS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from types import ModuleType

from appliance.accidents import log_accident
from appliance.box import Box
from appliance.store.venue import get_venue
from appliance.webhooks.network import Network
from web.names.tls import is_alone, speaks_tls
from web.names.whereabouts import ANY, follow_addresses


@asynccontextmanager
async def announcing(box: Box, host: str, port: int, network: Network) -> AsyncIterator[None]:
    """Announce the box while the block lasts, unless it is alone or `server.mdns` is off.

    The first requests go before: the library is read beside them. When the machine gets other
    addresses they are announced instead.
    """
    server = box.settings.server
    if not server.mdns or is_alone(host):
        yield
        return
    task = asyncio.get_running_loop().create_task(_announce(box, host, port, network), name="mdns")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _announce(box: Box, host: str, port: int, network: Network) -> None:
    tls_port = box.settings.server.tls_port
    tls = speaks_tls(host, tls_port)
    try:
        announcement = await asyncio.to_thread(_read_announcement)
        async with AsyncExitStack() as told, aclosing(follow_addresses(network)) as changes:
            async for found in changes:
                await told.aclose()
                addresses = found if host in ANY else [host]
                if not addresses:
                    continue
                venue = box.live.database.peek(get_venue)
                info = announcement.describe(
                    venue.slug, venue.name, addresses, tls_port if tls else port, tls=tls
                )
                await told.enter_async_context(announcement.announced(info, addresses))
    except Exception as error:  # noqa: BLE001 - the box is found by its address all the same
        log_accident("telling the box's name", error)


def _read_announcement() -> ModuleType:
    from web.names import announcement  # noqa: PLC0415 - a box that is alone has no use for it

    return announcement
