"""`<slug>.local` and `_https._tcp`, told to the house by multicast DNS."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from types import ModuleType

from appliance.alone import is_alone, speaks_tls
from appliance.box import Box
from appliance.model.notices import VenueChanged
from appliance.store.database import ChangedBeside
from appliance.store.venue import get_venue
from appliance.tls.names import own_addresses
from appliance.webhooks.network import Network
from web.names.whereabouts import ANY, follow, keep_at


@asynccontextmanager
async def announcing(box: Box, host: str, port: int, network: Network) -> AsyncIterator[None]:
    """Announce the box while the block lasts, unless it is alone or `server.mdns` is off.

    The first requests go before: the library is read beside them. When the machine gets other
    addresses, or the venue another name, they are announced instead.
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
    """Until cancelled: an address may be gone before it is announced on, and come again."""
    renamed = asyncio.Event()

    def on_commit(notices: Sequence[object]) -> None:
        if any(isinstance(notice, (VenueChanged, ChangedBeside)) for notice in notices):
            renamed.set()

    box.live.database.on_commit(on_commit)
    await keep_at(
        "telling the box's name", partial(_announce_changes, box, host, port, network, renamed)
    )


async def _announce_changes(
    box: Box, host: str, port: int, network: Network, renamed: asyncio.Event
) -> None:
    tls_port = box.settings.server.tls_port
    tls = speaks_tls(host, tls_port)
    database = box.live.database

    def look() -> tuple[str, str, list[str]]:
        venue = database.peek(get_venue)
        return venue.slug, venue.name, own_addresses() if host in ANY else [host]

    announcement = await asyncio.to_thread(_read_announcement)
    async with AsyncExitStack() as told, aclosing(follow(network, look, renamed)) as changes:
        async for slug, name, addresses in changes:
            await told.aclose()
            if not addresses:
                continue
            info = announcement.describe(slug, name, addresses, tls_port if tls else port, tls=tls)
            await told.enter_async_context(announcement.announced(info, addresses))


def _read_announcement() -> ModuleType:
    from web.names import announcement  # noqa: PLC0415 - a box that is alone has no use for it

    return announcement
