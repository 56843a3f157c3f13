"""Announce the box by mDNS, and update its links and certificate if its addresses change.

After a power cut, for example, the box may start before the router and get its IP address later.
zeroconf is imported only where it is needed, because a box that listens only on loopback does not
use it.

Of two boxes of one venue, the second one does not serve: they would book the same table twice, and
send each email and webhook twice. That happens if a backup was restored on a spare machine and the
old box comes back.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from hmac import compare_digest
from importlib import import_module
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from appliance.box import Box
from appliance.checks.network import NONCE_BYTES, PROOF_PATH
from appliance.core.errors import OperatorError, log_exception
from appliance.core.network import (
    REMOTE_ADDRESSES,
    get_start,
    house_addresses,
    in_url,
    is_beside,
    is_loopback_host,
    listens_at,
    own_interfaces,
    serves_tls,
    source_address,
)
from appliance.database.database import ChangedBeside
from appliance.outbox import VenueChanged
from appliance.scheduler import run_in_daemon_thread
from appliance.venue.model import Venue, get_venue

if TYPE_CHECKING:
    from zeroconf.asyncio import AsyncServiceInfo

log = logging.getLogger(__name__)

SERVICE = "_venuebox._tcp.local."
ANY = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
_LOOPBACK = "127.0.0.1"
_LOOK_SECONDS = 60.0  # interval between checks of the addresses
_LOOK_WITHOUT_SECONDS = 5.0  # interval between checks while the box has no address
_LOOK_UP_MS = 1000.0
_ASK_SECONDS = 3.0
_SECONDS = 6.0  # time limit for the whole check
_ADDRESSES_MAX = 8  # maximum number; anybody on the network can announce thousands
_BODY_MAX = 1000  # in bytes


def find_addresses(
    host: str, port: int, remembered: str | None, house_address: str = ""
) -> tuple[str, ...]:
    """Return the plain http URLs at which other machines on the LAN reach the box, best first.

    `house_address` is the setting `server.house_address`; if set, it is the only one. Of several,
    the first is the one on the machine's way out, or else the one that the box had before. If the
    machine has no network, return `remembered`, the box's last known URL, because the router
    usually assigns the same address again. If `remembered` is None or has a different port, return
    the loopback address.
    """
    host = house_address or host
    if host not in ANY:
        return (f"http://{in_url(host)}:{port}",)
    last = urlsplit(remembered or "")
    known = last.hostname if remembered and last.port == port else None
    own = house_addresses(own_interfaces()) or [known or _LOOPBACK]
    wanted = source_address(REMOTE_ADDRESSES[0])
    first = next((each for each in (wanted, known) if each in own), own[0])
    return tuple(f"http://{in_url(each)}:{port}" for each in dict.fromkeys((first, *own)))


def find_local_address(host: str, port: int) -> str:
    """Return the box's plain http URL on this machine, or "" if it listens on a LAN address only.

    A connection to a LAN address may leave the machine, so passwords must not be sent there over
    plain http.
    """
    if host in ANY:
        return f"http://{_LOOPBACK}:{port}"
    return f"http://{in_url(host)}:{port}" if is_loopback_host(host) else ""


@asynccontextmanager
async def following(box: Box, host: str, port: int) -> AsyncIterator[None]:
    """During the block, check the box's addresses every minute and announce them by mDNS."""
    if is_loopback_host(host):
        yield
        return
    task = asyncio.create_task(_AddressWatch(box, host, port).run(), name="addresses")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class _AddressWatch:
    def __init__(self, box: Box, host: str, port: int) -> None:
        self._box, self._host, self._port = box, host, port
        self._venue_changed = asyncio.Event()
        self._announced: tuple[str, str, list[tuple[str, int]]] | None = None
        self._addresses: list[str] | None = None
        self._is_first_move = True
        box.live.database.on_commit(self._on_change, VenueChanged, ChangedBeside)

    def _on_change(self, _notices: Sequence[object]) -> None:
        self._venue_changed.set()

    async def run(self) -> None:
        """Check until cancelled. Retry after a failure, and log the same failure only once."""
        failure = ""
        async with AsyncExitStack() as announcement:
            while True:
                try:
                    await self._check(announcement)
                    failure = ""
                except Exception as error:  # noqa: BLE001 - retried at the next check
                    if str(error) != failure:
                        log_exception("addresses: check", error)
                    failure = str(error)
                seconds = _LOOK_SECONDS if self._addresses else _LOOK_WITHOUT_SECONDS
                # Clear the event only now, because the check itself may have set it. Anything that
                # changed during this check is found by the next one.
                self._venue_changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._venue_changed.wait()

    async def _check(self, announcement: AsyncExitStack) -> None:
        interfaces = [each for each in own_interfaces() if listens_at(self._host, each.address)]
        is_anywhere = self._host in ANY
        addresses = sorted({each.address for each in interfaces}) if is_anywhere else [self._host]
        try:
            if is_anywhere and addresses != self._addresses:
                self._move(addresses)
            self._addresses = addresses
        finally:
            if self._box.settings.server.mdns:
                house = [
                    (each.address, each.index)
                    for each in interfaces
                    if (each.is_house if is_anywhere else each.address == self._host)
                ]
                await self._announce(house, announcement)

    def _move(self, addresses: list[str]) -> None:
        box = self._box
        is_first, self._is_first_move = self._is_first_move, False
        remembered, setting = box.directory.remembered_address(), box.settings.server.house_address
        found = find_addresses(self._host, self._port, remembered, setting)
        if is_first and (box.live.links.address, *box.live.links.others) == found:
            return
        log.info("addresses: changed to %s", ", ".join(addresses) or "none")
        box.move(*found)
        box.look_for_changes()  # also renews the certificate, which contains the addresses
        box.directory.remember_address(found[0])

    async def _announce(
        self, interfaces: list[tuple[str, int]], announcement: AsyncExitStack
    ) -> None:
        venue = self._box.live.database.peek(get_venue)
        wanted = (venue.slug, venue.name, interfaces)
        if wanted == self._announced:
            return
        self._announced = None
        await announcement.aclose()
        addresses = [text for text, _index in interfaces]
        if addresses:
            tls_port = self._box.settings.server.tls_port
            tls = serves_tls(self._host, tls_port)
            await asyncio.to_thread(import_module, "zeroconf.asyncio")  # the import takes 100 ms
            port = tls_port if tls else self._port
            infos = describe(venue, addresses, port, tls=tls)
            await announcement.enter_async_context(announced(infos, addresses))
        self._announced = wanted


def service_name(venue_id: str) -> str:
    """Return the name under which a box of the venue finds another one."""
    return f"{venue_id}.{SERVICE}"


def describe(
    venue: Venue, addresses: Iterable[str], port: int, *, tls: bool
) -> list["AsyncServiceInfo"]:
    """Return the mDNS services: a web site with the venue's name, and the box itself."""
    from zeroconf.asyncio import AsyncServiceInfo  # noqa: PLC0415 - see the module docstring

    scheme = "https" if tls else "http"
    kind = f"_{scheme}._tcp.local."
    label = venue.name.replace(".", " ").encode()[:63].decode("utf-8", "ignore").strip()
    return [
        AsyncServiceInfo(
            service, name, port, properties=properties, server=f"{venue.slug.lower()}.local.",
            addresses=[ip_address(text).packed for text in addresses],
        )
        for service, name, properties in (
            (kind, f"{label or venue.slug}.{kind}", {"path": "/"}),
            (SERVICE, service_name(venue.id), {"scheme": scheme}),
        )
    ]  # fmt: skip


@asynccontextmanager
async def announced(
    infos: Sequence["AsyncServiceInfo"], addresses: Sequence[str]
) -> AsyncIterator[None]:
    """During the block, announce `infos` by multicast DNS from the interfaces with `addresses`.

    Raises OSError or zeroconf's Error if this fails.
    """
    from zeroconf import IPVersion  # noqa: PLC0415 - see the module docstring
    from zeroconf.asyncio import AsyncZeroconf  # noqa: PLC0415 - see the module docstring

    responder = AsyncZeroconf(interfaces=list(addresses), ip_version=IPVersion.All)
    async with responder:  # unregisters the services at the end
        for info in infos:
            # If another device already uses the service name, zeroconf adds a number to ours. The
            # host name stays the same.
            await responder.async_register_service(info, allow_name_change=True)
        yield


async def refuse_duplicate(box: Box, host: str) -> None:
    """Raise OperatorError if a box of the same venue answers on the network.

    `host` is where this box will listen. If that is loopback, if `server.mdns` is off or if the
    network fails, the box starts without an answer. The check takes at most 6 s, and about one if
    nobody answers.
    """
    if is_loopback_host(host) or not box.settings.server.mdns:
        return
    venue_id = box.live.database.peek(get_venue).id
    url = ""
    try:
        async with asyncio.timeout(_SECONDS):
            # In a thread, because zeroconf blocks its event loop while it reads a flood of packets.
            found = await run_in_daemon_thread(lambda: asyncio.run(_look_up(venue_id, host)))
            answers = await asyncio.gather(*(_is_same(box, each) for each in found))
            url = next((each for each, is_same in zip(found, answers, strict=True) if is_same), "")
    except Exception as error:  # noqa: BLE001 - no other fault may keep the box from serving
        log_exception("serve: look for another box of this venue", error)
    if url:
        raise OperatorError(
            f"another box of this venue answers at {url}, so this box does not serve. Switch that "
            "box off. To serve beside it, start this box with venuebox serve --force."
        )


async def _look_up(venue_id: str, host: str) -> list[str]:
    """Return the base URLs that boxes of the venue announce, except this machine's own."""
    from zeroconf import IPVersion  # noqa: PLC0415 - see above
    from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf  # noqa: PLC0415 - see above

    interfaces = [each.address for each in own_interfaces() if listens_at(host, each.address)]
    if not interfaces:
        return []
    info = AsyncServiceInfo(SERVICE, service_name(venue_id))
    async with AsyncZeroconf(interfaces=interfaces, ip_version=IPVersion.All) as resolver:
        await info.async_request(resolver.zeroconf, _LOOK_UP_MS)
    scheme = info.decoded_properties.get("scheme")
    found = [text for text in info.parsed_addresses() if is_beside(text)][:_ADDRESSES_MAX]
    return [f"{scheme}://{in_url(address)}:{info.port}" for address in found]


async def _is_same(box: Box, url: str) -> bool:
    """Whether a box that has this box's keys answers at `url`.

    Certificates are not checked, because only a box with the keys can answer a random nonce.
    """
    nonce = box.tokens.random_bytes(NONCE_BYTES).hex()
    with suppress(Exception):  # any other response is not from a box of this venue
        _status, body = await get_start(
            f"{url}{PROOF_PATH}/{nonce}", _BODY_MAX, _ASK_SECONDS, tls=False
        )
        proof = str(json.loads(body)["proof"]).encode("utf-8", "replace")
        return compare_digest(proof, box.live.keyring.prove(nonce).encode())
    return False
