"""`/portal/door`: terminals, scanners, conflicts, pairing, signing keys."""

import asyncio
from functools import partial

from aiohttp import web

from appliance.core.errors import NotFound
from appliance.core.qr import link_svg
from appliance.core.tokens import hash_token
from appliance.database.connection import Reader
from appliance.door.offline_sync import acknowledge_conflict, list_open_conflicts
from appliance.door.signing_keys import list_key_ages, rotate_signing_key
from appliance.door.terminals import (
    NAME_MAX,
    PAIRING_LIFE_MS,
    PORTAL_TERMINAL_ID,
    ROLES,
    Terminal,
    edit_terminal,
    find_offer,
    get_terminal,
    issue_terminal,
    list_open_offers,
    list_terminals,
    offer_pairing,
    revoke_terminal,
    terminal_mark,
)
from appliance.environment import terminal_base, trust_page
from appliance.http.request import ENVIRONMENT
from terminal_bridge.scanners.scanners import READERS
from web.portal import scan_log as export
from web.portal import scan_log as log
from web.portal.first_run import steps_of
from web.portal.forms import FORM, Form
from web.portal.guard import actor_of, id_of
from web.portal.navigation import PortalRoute
from web.portal.responses import instants_of, language_of, portal_page, see_other
from web.portal.scan_log import result_words
from web.portal.session import describe_device

_DAY = 24 * 3600 * 1000
_YEAR = 365


async def show_door(request: web.Request) -> web.Response:
    """`GET /portal/door`."""
    environment = request[ENVIRONMENT]
    values = {
        **await environment.database.read(_read),
        "readers": [
            state for state in request.app[READERS].states if state.environment == environment.name
        ],
        "results": result_words(language_of(request)),
        "in_words": instants_of(request),
        "version_of": _describe_version,
        "steps": await steps_of(request),
    }
    return portal_page(request, "portal/door/door.html", values)


async def show_terminal(request: web.Request) -> web.Response:
    """`GET …/terminals/{id}`: rename, change the role of, or revoke a terminal."""
    terminal = request[ENVIRONMENT].database.peek(get_terminal, _terminal_id(request))
    values: dict[str, object] = {
        "terminal": terminal,
        "seen": terminal_mark(terminal.name, terminal.role),
        "in_words": instants_of(request),
        "version_of": _describe_version,
    }
    return portal_page(request, "portal/door/terminal.html", values)


async def edit(request: web.Request) -> web.Response:
    """`POST …/terminals/{id}`: change name and role, effective with its next request."""
    terminal_id, form = _terminal_id(request), request[FORM]
    name, role = _read_terminal(form)
    await request[ENVIRONMENT].database.write(
        edit_terminal, terminal_id, form.text("seen", 64), name, role, actor=actor_of(request)
    )
    return see_other(request, "/door", "saved")


async def revoke(request: web.Request) -> web.Response:
    """`POST …/terminals/{id}/revoke`: reject the terminal from its next request on."""
    terminal_id = _terminal_id(request)
    database = request[ENVIRONMENT].database
    await database.write(revoke_terminal, terminal_id, actor=actor_of(request))
    return see_other(request, "/door", "terminal-revoked")


async def acknowledge(request: web.Request) -> web.Response:
    """`POST …/conflicts/{id}/acknowledge`: mark the conflict as resolved."""
    database = request[ENVIRONMENT].database
    await database.write(acknowledge_conflict, id_of(request), actor=actor_of(request))
    return see_other(request, "/door", "conflict-seen")


async def offer(request: web.Request) -> web.Response:
    """`POST …/pair`: a pairing code as QR, digits and link; shown once."""
    environment = request[ENVIRONMENT]
    name, role = _read_terminal(request[FORM])
    offered = await environment.database.write(offer_pairing, name, role, actor=actor_of(request))
    base = terminal_base(environment.links, environment.settings.server)
    link = offered.link(base)
    values: dict[str, object] = {
        "name": name,
        "code": offered.code,
        "link": link,
        "picture": await asyncio.to_thread(link_svg, link),
        "trust": trust_page(environment.links, base),
        "minutes": PAIRING_LIFE_MS // 60_000,
        "mark": hash_token(offered.secret).hex(),
        "state": "open",
    }
    return portal_page(request, "portal/door/pairing.html", values)


async def show_state(request: web.Request) -> web.Response:
    """`GET …/pairings/{mark}`: the state of a pairing; polled while it is open."""
    mark = request.match_info["mark"]
    try:
        found = request[ENVIRONMENT].database.peek(find_offer, bytes.fromhex(mark))
    except ValueError:
        raise NotFound from None
    values: dict[str, object] = {"mark": mark, "state": found.state if found else "over"}
    part = "state" if "HX-Request" in request.headers else "page"
    return portal_page(request, f"portal/door/pairing_{part}.html", values)


async def issue(request: web.Request) -> web.Response:
    """`POST …/issue`: a token for a scanner or an agent; shown once."""
    environment = request[ENVIRONMENT]
    name, role = _read_terminal(request[FORM])
    _, token = await environment.database.write(
        issue_terminal, name, role, language_of(request).code, actor=actor_of(request)
    )
    base = terminal_base(environment.links, environment.settings.server)
    values: dict[str, object] = {"name": name, "token": token, "address": f"{base}/terminal/v1"}
    return portal_page(request, "portal/door/token.html", values)


async def show_keys(request: web.Request) -> web.Response:
    """`GET …/keys`: the signing keys."""
    database = request[ENVIRONMENT].database
    keys = await database.read(list_key_ages)
    now = database.clock.now()
    signing = next((key for key in keys if key.retired_at is None), None)
    days = max(0, now - signing.created_at) // _DAY if signing else 0
    values: dict[str, object] = {
        "keys": keys,
        "days": days,
        "is_old": days > _YEAR,
        "in_words": instants_of(request),
    }
    return portal_page(request, "portal/door/keys.html", values)


async def rotate(request: web.Request) -> web.Response:
    """`POST …/keys/rotate`: create a new signing key; existing passes stay valid."""
    return await _rotate(request, leaked=False)


async def replace_leaked(request: web.Request) -> web.Response:
    """`POST …/keys/leaked`: invalidate all earlier passes; links show new ones."""
    return await _rotate(request, leaked=True)


async def _rotate(request: web.Request, *, leaked: bool) -> web.Response:
    environment = request[ENVIRONMENT]
    await environment.database.write(
        rotate_signing_key, environment.keyring, leaked=leaked, actor=actor_of(request)
    )
    return see_other(request, "/door/keys", "key-rotated")


def _read_terminal(form: Form) -> tuple[str, str]:
    return form.name(NAME_MAX), form.one_of("role", ROLES)


def _terminal_id(request: web.Request) -> str:
    """Return the id in the path. Raises NotFound for the portal's own terminal."""
    terminal_id = id_of(request)
    if terminal_id == PORTAL_TERMINAL_ID:
        raise NotFound
    return terminal_id


def _describe_version(terminal: Terminal) -> str:
    """Return the terminal's browser and system, or its own version text."""
    return describe_device(terminal.version or "") or terminal.version or ""


def _read(reader: Reader) -> dict[str, object]:
    terminals = list_terminals(reader)
    return {
        "terminals": [one for one in terminals if one.revoked_at is None],
        "revoked": [one for one in terminals if one.revoked_at is not None],
        "offers": list_open_offers(reader),
        "conflicts": list_open_conflicts(reader),
    }


_ROOM = "/portal/door"
_managers = partial(PortalRoute, role="manager")

DOOR_ROOM_ROUTES = (
    _managers("GET", _ROOM, handler=show_door),
    _managers("POST", f"{_ROOM}/pair", handler=offer),
    _managers("GET", f"{_ROOM}/pairings/{{mark}}", handler=show_state),
    _managers("POST", f"{_ROOM}/issue", handler=issue),
    _managers("GET", f"{_ROOM}/terminals/{{id}}", handler=show_terminal),
    _managers("POST", f"{_ROOM}/terminals/{{id}}", handler=edit),
    _managers("POST", f"{_ROOM}/terminals/{{id}}/revoke", handler=revoke),
    _managers("POST", f"{_ROOM}/conflicts/{{id}}/acknowledge", handler=acknowledge),
    _managers("GET", f"{_ROOM}/log", handler=log.show_log),
    _managers("GET", f"{_ROOM}/log/check", handler=log.check_log),
    _managers("GET", f"{_ROOM}/log/export", handler=export.export_log),
    _managers("GET", f"{_ROOM}/keys", handler=show_keys),
    _managers("POST", f"{_ROOM}/keys/rotate", handler=rotate),
    PortalRoute("POST", f"{_ROOM}/keys/leaked", "owner", replace_leaked),
)
