"""One announcement by multicast DNS, for as long as it is true."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address

from zeroconf import IPVersion
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf


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
    """Announce on these addresses while the block lasts; OSError or zeroconf's Error."""
    responder = AsyncZeroconf(interfaces=list(addresses), ip_version=IPVersion.All)
    try:
        # Another box of that name gets it with a number behind it; the host's name stays.
        await responder.async_register_service(info, allow_name_change=True)
        yield
    finally:
        await responder.async_unregister_all_services()
        await responder.async_close()
