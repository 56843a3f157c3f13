"""Update links, certificate and mDNS name when the machine's addresses change.

After a power cut the box may start before the router and have no address yet.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import ModuleType
from urllib.parse import urlsplit

from appliance.box import Box
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import log_exception
from appliance.core.network import is_loopback_host, own_interfaces, serves_tls
from appliance.database.database import ChangedBeside
from appliance.outbox import VenueChanged
from appliance.venue.rows import get_venue

log = logging.getLogger(__name__)

ANY = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on
_ALONE = "127.0.0.1"
_LOOK_SECONDS = 60.0
_LOOK_WITHOUT_SECONDS = 5.0  # while the box has no address


def find_address(host: str, port: int, remembered: str | None) -> str:
    """Return the plain http URL at which other machines reach the box.

    Without a network, return `remembered`: the router usually assigns the same address again.
    If there is none, return the loopback address.
    """
    if host not in ANY:
        return f"http://{in_url(host)}:{port}"
    found = _address_that_leads_out()
    if found is None and remembered is not None and urlsplit(remembered).port == port:
        return remembered
    return f"http://{found or _ALONE}:{port}"


def find_local_address(host: str, port: int) -> str:
    """Return the plain http URL of the box on this machine; "" if it listens at one LAN address.

    A connection to a LAN address may leave the machine, so it must not carry a password.
    """
    if host in ANY:
        return f"http://{_ALONE}:{port}"
    return f"http://{in_url(host)}:{port}" if is_loopback_host(host) else ""


def in_url(host: str) -> str:
    """Return `host` in URL syntax (IPv6 in brackets)."""
    return f"[{host}]" if ":" in host else host


@asynccontextmanager
async def following(
    box: Box, directory: DataDirectory, host: str, port: int
) -> AsyncIterator[None]:
    """Check the box's addresses every minute and announce them by mDNS during the block."""
    if is_loopback_host(host):
        yield
        return
    task = asyncio.create_task(_Following(box, directory, host, port).run(), name="addresses")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class _Following:
    def __init__(self, box: Box, directory: DataDirectory, host: str, port: int) -> None:
        self._box, self._directory, self._host, self._port = box, directory, host, port
        self._renamed = asyncio.Event()
        self._announced: tuple[str, str, list[tuple[str, int]]] | None = None
        self._addresses: list[str] | None = None
        self._is_first = True
        box.live.database.on_commit(self._on_commit)

    def _on_commit(self, notices: Sequence[object]) -> None:
        if any(isinstance(notice, (VenueChanged, ChangedBeside)) for notice in notices):
            self._renamed.set()

    async def run(self) -> None:
        """Run until cancelled. Log a repeated failure once and retry at the next check."""
        trouble = ""
        async with AsyncExitStack() as announcement:
            while True:
                self._renamed.clear()
                try:
                    interfaces = own_interfaces()
                    addresses = [self._host]
                    if self._host in ANY:
                        addresses = sorted({text for text, _index in interfaces})
                    try:
                        if addresses != self._addresses:
                            if self._host in ANY:
                                self._move(addresses)
                            self._addresses = addresses
                    finally:
                        if self._box.settings.server.mdns:
                            await self._announce(addresses, interfaces, announcement)
                    trouble = ""
                except Exception as error:  # noqa: BLE001 - retried at the next check
                    if str(error) != trouble:
                        log_exception("following the box's addresses", error)
                    trouble = str(error)
                rest = _LOOK_SECONDS if self._addresses else _LOOK_WITHOUT_SECONDS
                if trouble:  # a failed move sets the event itself
                    await asyncio.sleep(rest)
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(rest):
                        await self._renamed.wait()

    def _move(self, addresses: list[str]) -> None:
        box = self._box
        is_first, self._is_first = self._is_first, False
        address = find_address(self._host, self._port, self._directory.remembered_address())
        if is_first and box.live.links.address == address:
            return
        log.info("addresses: now %s", ", ".join(addresses) or "none")
        box.move(address)
        box.look_for_changes()  # the certificate names addresses too
        self._directory.remember_address(address)

    async def _announce(
        self, addresses: list[str], interfaces: list[tuple[str, int]], announcement: AsyncExitStack
    ) -> None:
        venue = self._box.live.database.peek(get_venue)
        wanted = (venue.slug, venue.name, [each for each in interfaces if each[0] in addresses])
        if wanted == self._announced:
            return
        self._announced = None
        await announcement.aclose()
        if addresses:
            tls_port = self._box.settings.server.tls_port
            tls = serves_tls(self._host, tls_port)
            port = tls_port if tls else self._port
            library = await asyncio.to_thread(_read_announcement)
            info = library.describe(venue.slug, venue.name, addresses, port, tls=tls)
            await announcement.enter_async_context(library.announced(info, addresses))
        self._announced = wanted


def _read_announcement() -> ModuleType:
    from web import mdns as announcement  # noqa: PLC0415 - a loopback-only box does not need it

    return announcement


def _address_that_leads_out() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends no packet, only selects a route
        except OSError:
            return None
        found = str(probe.getsockname()[0])
    return None if found == _ALONE else found
