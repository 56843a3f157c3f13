"""Reverse proxies and tunnels that are not set up: noticed by what they send, noted as conditions.

All who come through a proxy that is not in `server.trusted_proxies` are one caller; a trusted one
that says neither who asks nor whether over https is as bad. `doctor` and the portal tell what to
write where (docs/operations/https.md).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

from appliance.alone import is_public
from appliance.box import Box
from appliance.errors import Unavailable
from appliance.store.conditions import Condition, drop_condition, drop_conditions, put_condition
from web.names.secure import name_asked
from web.peer import is_loopback, is_trusted, networks_of

PROXY_UNKNOWN = "proxy_unknown"
PROXY_SILENT = "proxy_says_nothing"
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP")
_NGINX = (
    "proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; "
    "proxy_set_header X-Forwarded-Proto $scheme;"
)
_MOST = 5  # addresses that are told of
_MINUTE = 60.0


class ProxyWatch:
    """Looks at each request, and writes about one address at most once a minute."""

    def __init__(self, box: Box) -> None:
        server = box.settings.server
        self._database = box.live.database
        self._clock = box.clock
        self._named = server.trusted_proxies
        self._proxies = networks_of(server.trusted_proxies)
        self._public = urlsplit(server.app_url).hostname if is_public(server.app_url) else None
        self._known: dict[tuple[str, str], tuple[bool, float]] = {}
        self._writing: set[asyncio.Task[None]] = set()

    def attach(self, app: web.Application) -> None:
        """Look at every request of `app` from now on."""
        app.on_response_prepare.append(self._look)
        app.cleanup_ctx.append(self._run)

    async def _run(self, _app: web.Application) -> AsyncIterator[None]:
        """Forget what was noted before the start: the settings may be others now."""
        with suppress(Unavailable):
            await self._database.write(drop_conditions, {PROXY_UNKNOWN, PROXY_SILENT})
        yield
        await asyncio.gather(*self._writing)

    async def _look(self, request: web.Request, _response: web.StreamResponse) -> None:
        """Note what the request tells of whoever handed it on."""
        remote, headers = request.remote or "", request.headers
        is_public = self._public is not None and name_asked(request) == self._public
        # Browsers send Sec-Fetch-Mode over https alone, and from loopback.
        away = is_public if is_loopback(remote) else "Sec-Fetch-Mode" in headers
        is_handed_on = away and not request.secure
        if self._proxies and is_trusted(request, self._proxies):
            says_how = request.secure or "X-Forwarded-Proto" in headers
            if says_how and "X-Forwarded-For" in headers:
                self._note(PROXY_SILENT, remote, "", holds=False)
            elif is_public or is_handed_on:
                self._note(PROXY_SILENT, remote, _NGINX, holds=True)
        elif is_handed_on or any(name in headers for name in _FORWARDED):
            line = f"trusted_proxies = {json.dumps([*self._named, remote])}"
            # Strangers on the internet may send such headers; the venue's proxies are nearer.
            if _is_near(remote):
                self._note(PROXY_UNKNOWN, remote, line, holds=True)

    def _note(self, name: str, address: str, detail: str, *, holds: bool) -> None:
        key, now = (name, address), self._clock.monotonic()
        held, since = self._known.get(key, (False, -_MINUTE))
        is_new = key not in self._known
        if held == holds or now - since < _MINUTE or (is_new and len(self._known) >= _MOST):
            return
        self._known[key] = holds, now
        task = asyncio.ensure_future(self._write(key, detail, holds=holds))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, key: tuple[str, str], detail: str, *, holds: bool) -> None:
        try:
            if holds:
                condition = Condition(*key, self._database.clock.now(), detail)
                await self._database.write(put_condition, condition)
            else:
                await self._database.write(drop_condition, *key)
        except Unavailable:
            self._known[key] = not holds, self._known[key][1]


def _is_near(text: str) -> bool:
    """Whether it is an address of this machine or of a private network."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (getattr(address, "ipv4_mapped", None) or address).is_global
