"""Refuse to serve while another box with the same data answers on the local network.

Two boxes of one venue would book the same table twice and send each email and webhook twice. That
happens if a backup was restored on a spare machine and the old box comes back.
"""

import asyncio
import json
from contextlib import suppress
from hmac import compare_digest

from appliance.box import Box
from appliance.core.errors import OperatorError, log_exception
from appliance.core.network import (
    get_start,
    in_url,
    is_beside,
    is_loopback_host,
    listens_at,
    own_interfaces,
)
from appliance.doctor.outside import NONCE_BYTES, PROOF_PATH
from appliance.scheduler import run_in_daemon_thread
from appliance.venue.model import get_venue
from web.mdns import SERVICE, service_name

_LOOK_UP_MS = 1000.0
_ASK_SECONDS = 3.0
_SECONDS = 6.0  # for the whole check
_ADDRESSES_MAX = 8  # anybody on the network can announce thousands of them
_BODY_MAX = 1000  # bytes


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
    from zeroconf import IPVersion  # noqa: PLC0415 - see web/mdns.py
    from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf  # noqa: PLC0415 - see web/mdns.py

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

    Certificates are not checked: whoever knows the answer to a random nonce has the keys.
    """
    nonce = box.tokens.random_bytes(NONCE_BYTES).hex()
    with suppress(Exception):  # whatever answers there, it is not a box of this venue
        _status, body = await get_start(
            f"{url}{PROOF_PATH}/{nonce}", _BODY_MAX, _ASK_SECONDS, tls=False
        )
        proof = str(json.loads(body)["proof"]).encode("utf-8", "replace")
        return compare_digest(proof, box.live.keyring.prove(nonce).encode())
    return False
