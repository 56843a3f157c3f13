"""Find the venue's other boxes on the network, by mDNS and at known addresses."""

import asyncio
import base64
import json
import logging
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

from aiohttp import web

from appliance.backup.fence import Installation, Marker, unseal
from appliance.backup.recovery_key import RecoveryKey
from appliance.box import Box
from appliance.core.network import (
    get_start,
    in_url,
    is_loopback_host,
    listens_at,
    own_interfaces,
)
from appliance.core.tokens import Tokens
from appliance.doctor.outside import NONCE_BYTES, PROOF_PATH
from appliance.jobs.fence import FenceWatch, Look
from appliance.scheduler import run_in_daemon_thread
from appliance.venue.model import get_venue

log = logging.getLogger(__name__)

FENCE: web.AppKey[FenceWatch] = web.AppKey("fence")
_KINDS = ("_http._tcp.local.", "_https._tcp.local.")
_BROWSE_SECONDS = 1.5
_ANSWER_SECONDS = 4.0
_BODY_MAX = 4000  # bytes
_NAMES_MAX = 100  # maximum number of services to look up
# Maximum number of addresses to ask. Anybody on the network can announce thousands of them.
_ADDRESSES_MAX = 100


def look_around(box: Box, host: str) -> Look | None:
    """Return a function that finds the venue's other boxes by mDNS. This box listens at `host`.

    Returns None if this box does not use mDNS.
    """
    if is_loopback_host(host) or not box.settings.server.mdns:
        return None

    async def look(key: RecoveryKey, own: Installation) -> list[Marker]:
        slug = box.live.database.peek(get_venue).slug
        return await find_boxes(key, await browse(slug, host), box.tokens, own)

    return look


async def find_venue_boxes(
    marker: Marker | None, slug: str, host: str, key: RecoveryKey, tokens: Tokens,
    own: Installation | None = None,
) -> list[Marker]:  # fmt: skip
    """Return the markers that `find_boxes` finds at the addresses in `marker` or found by mDNS.

    If `slug` is "", mDNS is not used.
    """
    addresses = list(marker.addresses) if marker else []
    addresses += await browse(slug, host) if slug else []
    return await find_boxes(key, addresses, tokens, own)


async def find_boxes(
    key: RecoveryKey, addresses: Iterable[str], tokens: Tokens, own: Installation | None = None
) -> list[Marker]:
    """Request a marker from each of the first 100 base URLs in `addresses`, within 4 s.

    Returns the markers of the boxes that have the recovery key `key`, except the marker of the
    installation `own`. A response cannot be forged or replayed, because it is encrypted with the
    key and valid only for the nonce in the request.
    """
    urls = islice(dict.fromkeys(addresses), _ADDRESSES_MAX)
    found = await asyncio.gather(*(_ask(url, key, tokens) for url in urls))
    return [marker for marker in found if marker and marker.installation != own]


async def _ask(url: str, key: RecoveryKey, tokens: Tokens) -> Marker | None:
    nonce = tokens.random_bytes(NONCE_BYTES).hex()
    proof = f"{url}{PROOF_PATH}/{nonce}"
    try:
        # Do not check the certificate. The marker already proves which box responds.
        _status, body = await get_start(proof, _BODY_MAX, _ANSWER_SECONDS, tls=False)
        sealed = base64.b64decode(json.loads(body).get("serving", ""), validate=True)
    except Exception:  # noqa: BLE001 - no response may stop the requests to the other boxes
        return None
    marker = unseal(sealed, key, nonce)
    return marker and Marker(marker.installation, marker.at, [url], [])


async def browse(slug: str, host: str) -> list[str]:
    """Return the base URLs that boxes named `<slug>.local` announce by mDNS, within 3 s.

    Searches in a thread, because zeroconf would block the event loop for as long as it reads a
    flood of announcements.
    """
    return await run_in_daemon_thread(lambda: asyncio.run(_browse(slug, host)))


async def _browse(slug: str, host: str) -> list[str]:
    from zeroconf import Error, IPVersion  # noqa: PLC0415 - slow
    from zeroconf.asyncio import (  # noqa: PLC0415 - slow
        AsyncServiceBrowser,
        AsyncServiceInfo,
        AsyncZeroconf,
    )

    names: set[tuple[str, str]] = set()
    infos: list[AsyncServiceInfo] = []
    urls: list[str] = []

    def on_change(service_type: str, name: str, **_more: object) -> None:
        names.add((service_type, name))

    interfaces = [text for text, _index in own_interfaces() if listens_at(host, text)]
    if not interfaces:
        return []
    try:
        async with AsyncZeroconf(interfaces=interfaces, ip_version=IPVersion.All) as resolver:
            engine = resolver.zeroconf
            async with AsyncServiceBrowser(engine, list(_KINDS), handlers=[on_change]):
                await asyncio.sleep(_BROWSE_SECONDS)
            for kind, name in sorted(names)[:_NAMES_MAX]:
                with suppress(Error):  # the name does not match the service type
                    infos.append(AsyncServiceInfo(kind, name))
            milliseconds = _BROWSE_SECONDS * 1000
            await asyncio.gather(*(info.async_request(engine, milliseconds) for info in infos))
            for info in infos:
                if (info.server or "").lower() == f"{slug.lower()}.local.":
                    scheme = "https" if info.type == _KINDS[1] else "http"
                    found = map(in_url, info.parsed_addresses()[:_ADDRESSES_MAX])
                    urls += [f"{scheme}://{address}:{info.port}" for address in found]
    except (OSError, Error) as error:
        log.info("fence: the search for other boxes by mDNS failed: %s", error)
    return urls
