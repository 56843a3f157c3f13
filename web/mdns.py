"""Announce the box by multicast DNS."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address

from zeroconf import IPVersion
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf


def describe(
    slug: str, venue: str, addresses: Iterable[str], port: int, *, tls: bool
) -> AsyncServiceInfo:
    """Return the announced service: the box's name, addresses and port."""
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
    """Announce on these addresses during the block. Raises OSError or zeroconf's Error."""
    responder = AsyncZeroconf(interfaces=list(addresses), ip_version=IPVersion.All)
    try:
        # On a name conflict the service name gets a number; the host name stays.
        await responder.async_register_service(info, allow_name_change=True)
        yield
    finally:
        await responder.async_unregister_all_services()
        await responder.async_close()
