"""The section `update` of the page `/portal/box`: find and install a newer release."""

import asyncio
import io

import aiohttp
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from appliance.commands.service import takes_requests
from appliance.core.errors import OperatorError
from appliance.core.network import get_start
from appliance.release import (
    HEAD_BYTES,
    INTERRUPTED,
    Manifest,
    check_manifest,
    conclude,
    is_newer,
    read_manifest,
    read_release_key,
    read_update_record,
    request_update,
)
from appliance.staff.audit_log import record_audit
from appliance.webhooks.client import SystemTrust, Trust
from web.portal.cookies import BOX, LIVE
from web.portal.forms import Form
from web.portal.guard import actor_of
from web.portal.responses import portal_page, see_other

_DEADLINE_SECONDS = 10.0
_FRESH_SECONDS = 600.0
_OK = 200


class ReleaseWatch:
    """Looks for a newer release at `update.url`. A successful result is kept for ten minutes.

    - `manifest`: the manifest of the newer release, or None if there is no newer release.
    - `trouble`: why the release could not be read or cannot be installed, otherwise empty.
    - `looked_at`: when the latest attempt was made, by the event loop's clock, or None.
    """

    def __init__(self, url: str, installed: str) -> None:
        self.url, self.installed = url, installed
        self.key = _own_key()
        self.trust = SystemTrust()
        self.manifest: Manifest | None = None
        self.trouble = ""
        self.looked_at: float | None = None
        self._looking = asyncio.Lock()

    async def look(self) -> None:
        """Look for a newer release, within 10 s.

        Does nothing if there is no `url` or no release key, or if the latest attempt succeeded less
        than ten minutes ago.
        """
        async with self._looking:
            now, latest = asyncio.get_running_loop().time(), self.looked_at
            is_fresh = latest is not None and not self.trouble and now - latest < _FRESH_SECONDS
            if not self.url or self.key is None or is_fresh:
                return
            found, trouble = None, ""
            try:
                manifest = await fetch_manifest(self.url, self.key, self.trust)
                if is_newer(manifest.version, self.installed):
                    check_manifest(manifest, self.installed)
                    found = manifest
            except OperatorError as error:
                trouble = str(error)
            self.looked_at, self.manifest, self.trouble = now, found, trouble


RELEASES = web.AppKey("releases", ReleaseWatch)


def _own_key() -> Ed25519PublicKey | None:
    try:
        return read_release_key()
    except OperatorError:
        return None


async def fetch_manifest(url: str, key: Ed25519PublicKey, trust: Trust) -> Manifest:
    """Read the beginning of the release at `url` and return its manifest, within 10 s.

    Raises OperatorError if it cannot be read, or if it is not signed by `key`.
    """
    try:
        status, head = await get_start(
            url, HEAD_BYTES, _DEADLINE_SECONDS, tls=await trust(), follows=True
        )
    except TimeoutError:
        raise OperatorError(f"{url} did not respond within 10 s") from None
    except (aiohttp.ClientError, OSError) as error:
        raise OperatorError(f"{url} cannot be read ({error})") from None
    if status != _OK:
        raise OperatorError(f"{url} responded with HTTP status {status}")
    return read_manifest(io.BytesIO(head), key)


async def show_update(request: web.Request) -> web.Response:
    """`GET /portal/box/update`: look for a newer release, and show the update section.

    The page polls this during an update, even while the box restarts.
    """
    state = await read_update_state(request)
    if not state["is_updating"]:
        await request.app[RELEASES].look()
    return portal_page(request, "portal/box/update.html", {**state, "is_looked_up": True})


async def read_update_state(request: web.Request) -> dict[str, object]:
    """Return the template values for the update section, without looking for a newer release."""
    watch, root = request.app[RELEASES], request.app[BOX].directory.root
    record = await asyncio.to_thread(read_update_record, root)
    now = request.app[BOX].clock.now()
    outcome = record and conclude(record, watch.installed, now)
    return {
        "releases": watch,
        "record_of_update": outcome or record,
        "is_updating": record is not None and outcome is None,
        "was_interrupted": outcome and outcome.trouble == INTERRUPTED,
        "box": request.app[BOX],
        "can_install": await asyncio.to_thread(takes_requests, root),
        "update_command": f"sudo venuebox update {watch.url} --data {root}",
    }


async def install(request: web.Request, _form: Form) -> web.StreamResponse:
    """`POST /portal/box/update`: update to the newest release. The page shows the progress."""
    watch, root = request.app[RELEASES], request.app[BOX].directory.root
    state = await read_update_state(request)
    await watch.look()
    manifest = watch.manifest
    if manifest is not None and state["can_install"] and not state["is_updating"]:
        await request[LIVE].database.write(
            record_audit, actor_of(request), "update_requested", name=manifest.version
        )
        await asyncio.to_thread(request_update, root, watch.url, request.app[BOX].clock.now())
    return see_other(request, "/box?tab=version")
