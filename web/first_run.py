"""Restrict a box without an owner to its one-time link (docs/security.md, S8)."""

import sys
from collections.abc import Awaitable, Callable

from aiohttp import web

from appliance.box import Box
from appliance.core.errors import NotSetUp
from appliance.core.qr import link_blocks
from appliance.environment import house_base
from appliance.http.request import wants_page
from appliance.staff.first_run import is_closed, offer_setup
from web.https_policy import SECURE

SETUP_PATH = "/portal/setup"
_OPEN = frozenset({SETUP_PATH, "/health", "/ready"})
_STATIC = "/static/"
_SAFE = frozenset({"GET", "HEAD"})
_NOT_KEPT = {"Cache-Control": "no-store"}
_BLACK_ON_WHITE, _AS_BEFORE = "\x1b[97;40m", "\x1b[0m"


class FirstStart:
    """Keeps the box closed until it has an owner; after that, makes no more queries."""

    def __init__(self, box: Box) -> None:
        self._database = box.live.database
        self._closed = self._database.peek(is_closed)

    def leads_elsewhere(self, request: web.Request) -> str | None:
        """Return the https URL of the setup page if it was requested over plain http, else None.

        Browsers keep the secret after the # on a redirect.
        """
        if not self._closed or request.path != SETUP_PATH or request.method not in _SAFE:
            return None
        base = request.app[SECURE].elsewhere_for(request)
        return base and f"{base}{SETUP_PATH}"

    def lets_pass(self, request: web.Request) -> bool:
        """Return whether the request is allowed: always, once the box has an owner."""
        self._closed = self._closed and self._database.peek(is_closed)
        return not self._closed or request.path in _OPEN or request.path.startswith(_STATIC)


FIRST_START: web.AppKey[FirstStart] = web.AppKey("first_start", FirstStart)


@web.middleware
async def keep_closed(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer only setup requests until the box has an owner."""
    elsewhere = request.app[FIRST_START].leads_elsewhere(request)
    if elsewhere is not None:
        return web.Response(status=307, headers={"Location": elsewhere, **_NOT_KEPT})
    if request.app[FIRST_START].lets_pass(request):
        return await handler(request)
    if request.method in _SAFE and wants_page(request):
        return web.Response(status=303, headers={"Location": SETUP_PATH})
    raise NotSetUp


async def show_setup_link(box: Box, local: str, *, as_qr: bool) -> None:
    """Print a new one-time link if the box has no owner; earlier links become invalid.

    `local` is the box's address on this machine. A second link uses https and is for other
    machines: the password must not travel over plain http. `as_qr` prints it as a QR code too.
    """
    if not box.live.database.peek(is_closed):
        return
    secret = await box.live.database.write(offer_setup)
    link = f"{local}{SETUP_PATH}#{secret}"
    said = [
        "This box is new. Set it up here, within 30 minutes; the link works once:",
        f"\n  {link}\n",
    ]
    elsewhere = house_base(box.live.links, box.settings.server)
    if elsewhere.startswith("https:") and elsewhere != local:
        link = f"{elsewhere}{SETUP_PATH}#{secret}"
        said += [
            "From another machine, whose browser warns once if it does not know this box",
            "(venuebox tls show tells the fingerprint to compare):",
            f"\n  {link}\n",
        ]
    if as_qr:
        code = link_blocks(link)
        if sys.stdout.isatty():
            code = "\n".join(f"{_BLACK_ON_WHITE}{line}{_AS_BEFORE}" for line in code.split("\n"))
        said.append(f"{code}\n")
    said.append("Too late? Start venuebox again: it shows a new one.")
    sys.stdout.write("\n".join([*said, ""]))
    sys.stdout.flush()
