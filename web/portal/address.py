"""The page `/portal/box/address`: how guests and partners reach the box from the internet.

The owner chooses a relay, a port forward in the router or a proxy, and can test the public address.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from appliance.box import Box
from appliance.checks.check import Sentence, describe_acme, describe_seen, list_observations
from appliance.core.data_directory import wake_box
from appliance.core.errors import OperatorError, field_invalid
from appliance.core.files import atomic_write
from appliance.core.ssh import ensure_key
from appliance.database.connection import Reader
from appliance.relay import Relay
from appliance.staff.audit_log import record_audit
from appliance.tls.acme import REQUESTED, Plan, read_plan
from web.monitoring import OUTSIDE
from web.portal.box import save_changes, steps_of, text_of
from web.portal.cookies import BOX, LIVE
from web.portal.forms import Form
from web.portal.guard import actor_of
from web.portal.responses import Declined, language_of, portal_page, see_other
from web.relay.commands import NotJoined, join_relay

_PAGE = "/box/address"
_CONNECTED_SECONDS = 5.0
_LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory"
_LINE_MAX = 1000
_ADDRESSES_MAX = 500


async def show_address(request: web.Request) -> web.Response:
    """`GET /portal/box/address`: show how the box can be reached, and the latest test.

    The choices are a relay, a port forward and a proxy. The page marks the one that is in use.
    """
    box, outside = request.app[BOX], request.app[OUTSIDE]
    settings = box.settings
    root = box.directory.root
    values = {
        "settings": settings.server,
        "authority": _authority(settings.acme.directory or _LETS_ENCRYPT),
        "obtains": bool(settings.acme.directory),
        "relay": await asyncio.to_thread(_read_relay, root),
        "key": await asyncio.to_thread(_find_key, root),
        "troubles": await request[LIVE].database.read(
            _find_troubles, await asyncio.to_thread(read_plan, root / "tls", box.settings)
        ),
        "ports": box.settings.server,
        "host": _host_of(box.live.links.address),
        "outside": outside.latest,
        "can_test": bool(outside.url),
        "said": lambda sentence: text_of(sentence, language_of(request)),
        "may_change": box.save_settings is not None,
        "steps": await steps_of(request),
    }
    return portal_page(request, "portal/box/address.html", values)


async def check_address(request: web.Request, _form: Form) -> web.StreamResponse:
    """`POST /portal/box/address/test`: check that the public address leads to this box.

    The check fails if it takes longer than 6 s. If the last attempt to obtain a certificate failed,
    the box also tries to obtain one again.
    """
    await request.app[OUTSIDE].check()
    await asyncio.to_thread(_retry_certificate, request.app[BOX])
    return see_other(request, f"{_PAGE}#test")


def _retry_certificate(box: Box) -> None:
    """If the last attempt to obtain a certificate failed, request another one.

    Does nothing if the certificate authority's rate limits do not allow another attempt yet.
    """
    directory = box.directory
    plan = read_plan(directory.root / "tls", box.settings)
    now = box.clock.now()
    if plan.state.reason and plan.due(now) is not None and plan.may_ask(now):
        atomic_write(directory.root / "tls" / REQUESTED, b"")
        wake_box(directory.wakeup_pipe)


async def join(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/box/address/relay`: join a relay with the line that its operator sent.

    The box connects to the relay immediately, and orders a certificate for the new address.
    """
    _ = language_of(request).gettext
    try:
        relay = Relay.parse(form.lines("line", _LINE_MAX))
    except OperatorError:
        sentence = _("This is not a relay's line, or part of it is missing. Copy all of it.")
        raise Declined(sentence, 422, "line") from None
    try:
        await join_relay(request.app[BOX].directory.root, relay)
    except NotJoined as refusal:
        raise Declined(_(refusal.sentence, at=refusal.at), 422, "line") from None
    await request[LIVE].database.write(record_audit, actor_of(request), "relay_joined")
    # Let the relay client read the file that `join_relay` has written. The certificate is asked for
    # by way of the relay, so the line must be there first.
    wake_box(request.app[BOX].directory.wakeup_pipe)
    with suppress(TimeoutError):
        async with asyncio.timeout(_CONNECTED_SECONDS):
            await request.app[BOX].relay_connected.wait()
    return await _save(request, form, {"server.app_url": f"https://{relay.name}"})


async def forward(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/box/address/forward`: use an address that the router forwards to the box."""
    return await _save(request, form, {"server.app_url": _address_in(form)})


async def use_proxy(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/box/address/proxy`: use a proxy or tunnel, which has its own certificate."""
    proxies = form.text("trusted_proxies", _ADDRESSES_MAX).replace(",", " ").split()
    address = _address_in(form, "proxied_address")
    return await save_changes(
        request, {"server.app_url": address, "server.trusted_proxies": proxies}, _PAGE
    )


async def _save(request: web.Request, form: Form, changes: Mapping[str, str]) -> web.StreamResponse:
    """Save the address, and turn on certificates by ACME if the owner agrees to the terms."""
    acme = request.app[BOX].settings.acme
    more: dict[str, str | bool] = {}
    if form.checked("agree"):
        directory = acme.directory or _LETS_ENCRYPT
        more = {"acme.directory": directory, "acme.agree_terms": True}
    return await save_changes(request, {**changes, **more}, _PAGE)


def _address_in(form: Form, name: str = "address") -> str:
    """Return the https address in the form. Raises ValidationError if it is not one."""
    address = form.text(name, _ADDRESSES_MAX).rstrip("/")
    if not address.startswith("https://"):
        raise field_invalid(name, "an address that begins with https://.")
    return address


def _find_key(root: Path) -> str:
    """Return the box's public SSH key, or "" if it cannot be made, for example on a full disk."""
    with suppress(OSError):
        return ensure_key(root)
    return ""


def _read_relay(root: Path) -> Relay | None:
    try:
        return Relay.load(root)
    except OperatorError:  # a check reports this error
        return None


def _find_troubles(reader: Reader, plan: Plan) -> list[Sentence]:
    """Return why guests outside may not reach the box, as far as the box has found out."""
    seen = list_observations(reader, "relay_")
    return [*map(describe_seen, seen), *([describe_acme(plan.state)] if plan.state.reason else [])]


def _authority(directory: str) -> str:
    return "Let’s Encrypt" if directory == _LETS_ENCRYPT else _host_of(directory)


def _host_of(url: str) -> str:
    return urlsplit(url).hostname or ""
