"""`<slug>.local` and `_https._tcp`, told to the house by multicast DNS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import ModuleType

from appliance.accidents import log_accident
from appliance.box import Box
from appliance.store.venue import get_venue
from appliance.tls.names import own_addresses
from web.names.tls import is_alone, speaks_tls

_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on


@asynccontextmanager
async def announcing(box: Box, host: str, port: int) -> AsyncIterator[None]:
    """Announce the box while the block lasts, unless it is alone or `server.mdns` is off.

    The first requests go before: the library is read beside them.
    """
    server = box.settings.server
    if not server.mdns or is_alone(host):
        yield
        return
    venue = box.live.database.peek(get_venue)
    addresses = own_addresses() if host in _ANY else [host]
    if not addresses:
        yield
        return
    tls = speaks_tls(host, server.tls_port)
    told = venue.slug, venue.name, addresses, server.tls_port if tls else port

    async def announce() -> None:
        try:
            announcement = await asyncio.to_thread(_read_announcement)
            info = announcement.describe(*told, tls=tls)
            await stack.enter_async_context(announcement.announced(info, addresses))
        except Exception as error:  # noqa: BLE001 - the box is found by its address all the same
            log_accident("telling the box's name", error)

    async with AsyncExitStack() as stack:
        task = asyncio.get_running_loop().create_task(announce(), name="mdns")
        try:
            yield
        finally:
            await asyncio.gather(task, return_exceptions=True)


def _read_announcement() -> ModuleType:
    from web.names import announcement  # noqa: PLC0415 - a box that is alone has no use for it

    return announcement
