"""The page `/portal/door`: terminals, pairing, scanners, conflicts, signing keys and door log."""

import asyncio
from collections.abc import AsyncIterator
from datetime import date, timedelta

from aiohttp import web

from appliance.clock import DAY_MS
from appliance.core.errors import NotFound
from appliance.core.i18n import Language
from appliance.core.qr import qr_svg
from appliance.core.tokens import hash_token
from appliance.database.connection import Reader
from appliance.door.guest_pass import list_signing_keys, rotate_signing_key
from appliance.door.offline_sync import acknowledge_conflict, list_open_conflicts
from appliance.door.scan_log import Export, Format, LogFilter, page_log
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
from appliance.environment import other_terminal_bases, terminal_base, trust_page
from appliance.http.request import ENVIRONMENT
from appliance.reservations.request import parse_uuid
from appliance.reservations.rows import staff_names
from appliance.staff.audit_log import record_audit
from appliance.venue.model import evening_end, find_tonight, get_venue
from terminal_bridge.scanners.scanners import READERS
from web.door_app import door_words
from web.portal.box import steps_of
from web.portal.cookies import LIVE, describe_device
from web.portal.forms import Form, date_parameter, number_parameter
from web.portal.guard import actor_of, id_of, runs, write_as_staff
from web.portal.responses import REFUSED, language_of, portal_page, see_other, send_file

_KEY_DAYS_MAX = 365  # the page suggests a new signing key after a year


async def show_door(request: web.Request) -> web.Response:
    """`GET /portal/door`: show the terminals, scanners and unresolved conflicts."""
    environment = request[ENVIRONMENT]
    scanners = request.app[READERS].states
    values = {
        **await environment.database.read(_read),
        "readers": [each for each in scanners if each.settings.environment == environment.name],
        "results": _result_words(language_of(request)),
        "version_of": _describe_version,
        "steps": await steps_of(request),
        "rejected": request.path.rpartition("/")[2] if REFUSED in request else "",
    }
    return portal_page(request, "portal/door/door.html", values)


async def show_terminal(request: web.Request) -> web.Response:
    """`GET …/terminals/{id}`: show the forms for editing and revoking a terminal."""
    terminal = request[ENVIRONMENT].database.peek(get_terminal, _terminal_id(request))
    values = {
        "terminal": terminal,
        "seen": terminal_mark(terminal.name, terminal.role),
        "version_of": _describe_version,
    }
    return portal_page(request, "portal/door/terminal.html", values)


async def edit(request: web.Request, form: Form) -> web.Response:
    """`POST …/terminals/{id}`: change a terminal's name and role, from its next request on."""
    terminal_id, seen = _terminal_id(request), form.text("seen", 64)
    await write_as_staff(request, edit_terminal, terminal_id, seen, *_read_terminal(form))
    return see_other(request, "/door", "saved")


async def revoke(request: web.Request, _form: Form) -> web.Response:
    """`POST …/terminals/{id}/revoke`: revoke a terminal. Further requests from it are rejected."""
    await write_as_staff(request, revoke_terminal, _terminal_id(request))
    return see_other(request, "/door", "terminal-revoked")


acknowledge = runs(acknowledge_conflict, "/door", "conflict-seen")


async def offer(request: web.Request, form: Form) -> web.Response:
    """`POST …/pair`: create a pairing code and show it once, as a QR code, digits and a link."""
    environment = request[ENVIRONMENT]
    name, role = _read_terminal(form)
    offered = await write_as_staff(request, offer_pairing, name, role)
    base = terminal_base(environment.links, environment.settings.server)
    links = [offered.link(base)]
    others = other_terminal_bases(environment.links, environment.settings.server)
    links += [offered.link(other) for other in others]
    pictures = [await asyncio.to_thread(qr_svg, link, "L") for link in links]
    values = {
        "name": name,
        "code": offered.code,
        "link": links[0],
        "picture": pictures[0],
        "others": list(zip(links[1:], pictures[1:], strict=True)),
        "trust": trust_page(environment.links, base),
        "minutes": PAIRING_LIFE_MS // 60_000,
        "mark": hash_token(offered.secret).hex(),
        "state": "open",
    }
    return portal_page(request, "portal/door/pairing.html", values)


async def show_state(request: web.Request) -> web.Response:
    """`GET …/pairings/{mark}`: show a pairing's state.

    The page polls this until the pairing ends.
    """
    mark = request.match_info["mark"]
    try:
        found = request[ENVIRONMENT].database.peek(find_offer, bytes.fromhex(mark))
    except ValueError:
        raise NotFound from None
    values = {"mark": mark, "state": found.state if found else "over"}
    part = "state" if "HX-Request" in request.headers else "page"
    return portal_page(request, f"portal/door/pairing_{part}.html", values)


async def issue(request: web.Request, form: Form) -> web.Response:
    """`POST …/issue`: create a terminal for a scanner or an agent and show its token once."""
    environment = request[ENVIRONMENT]
    name, role = _read_terminal(form)
    _, token = await write_as_staff(request, issue_terminal, name, role, language_of(request).code)
    base = terminal_base(environment.links, environment.settings.server)
    values = {"name": name, "token": token, "address": f"{base}/terminal/v1"}
    return portal_page(request, "portal/door/token.html", values)


async def show_keys(request: web.Request) -> web.Response:
    """`GET …/keys`: show the keys that sign guest passes."""
    database = request[ENVIRONMENT].database
    keys = await database.read(list_signing_keys)
    signing = next((key for key in keys if key.retired_at is None), None)
    days = max(0, database.clock.now() - signing.created_at) // DAY_MS if signing else 0
    values = {
        "keys": keys,
        "days": days,
        "is_old": days > _KEY_DAYS_MAX,
    }
    return portal_page(request, "portal/door/keys.html", values)


async def rotate(request: web.Request, _form: Form) -> web.Response:
    """`POST …/keys/rotate`: create a new signing key. Existing passes remain valid."""
    return await _rotate(request, leaked=False)


async def replace_leaked(request: web.Request, _form: Form) -> web.Response:
    """`POST …/keys/leaked`: replace a leaked signing key. Existing passes become invalid.

    Guests get their new pass when they open their link.
    """
    return await _rotate(request, leaked=True)


async def _rotate(request: web.Request, *, leaked: bool) -> web.Response:
    await write_as_staff(request, rotate_signing_key, request[ENVIRONMENT].keyring, leaked=leaked)
    return see_other(request, "/door/keys", "key-rotated")


def _read_terminal(form: Form) -> tuple[str, str]:
    """Return the name and the role from the form."""
    return form.name(NAME_MAX), form.one_of("role", ROLES)


def _terminal_id(request: web.Request) -> str:
    """Return the terminal id in the URL path. Raises NotFound for the portal's own terminal."""
    terminal_id = id_of(request)
    if terminal_id == PORTAL_TERMINAL_ID:
        raise NotFound
    return terminal_id


def _describe_version(terminal: Terminal) -> str:
    """Return the terminal's browser and operating system, or else the version text that it sent."""
    return describe_device(terminal.version or "") or terminal.version or ""


def _read(reader: Reader) -> dict[str, object]:
    terminals = list_terminals(reader)
    return {
        "terminals": [terminal for terminal in terminals if terminal.revoked_at is None],
        "revoked": [terminal for terminal in terminals if terminal.revoked_at is not None],
        "offers": list_open_offers(reader),
        "conflicts": list_open_conflicts(reader),
    }


def _result_words(language: Language) -> dict[str, str]:
    """Return a map from the name of each verdict to its label."""
    words = door_words(language).items()
    return {name.removeprefix("word."): word for name, word in words if name.startswith("word.")}


_PAGE = 100
_SEARCH_MAX = 100
_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


async def show_log(request: web.Request) -> web.Response:
    """`GET …/log`: list the scans for `?date=` (default: tonight).

    The other query parameters are the filters `result`, `terminal` and `q`, and `page`.
    """
    chosen, page = date_parameter(request), number_parameter(request, "page") or 1
    wanted = LogFilter(
        refused=request.query.get("result") == "refused",
        terminal_id=parse_uuid(request.query.get("terminal", "")),
        text=" ".join(request.query.get("q", "").split())[:_SEARCH_MAX],
    )

    def read(reader: Reader) -> dict[str, object]:
        day = chosen or find_tonight(reader)
        log = page_log(reader, *_evening_bounds(reader, day), wanted, _PAGE, page)
        return {
            "day": day,
            "before": day - timedelta(days=1),
            "after": day + timedelta(days=1),
            "log": log,
            "pages": max(1, -(-log.total // _PAGE)),
            "portal": PORTAL_TERMINAL_ID,
            "terminals": list_terminals(reader),
        }

    values = {
        **await request[ENVIRONMENT].database.read(read),
        "wanted": wanted,
        "page": page,
        "staff": await request[LIVE].database.read(staff_names),
        "results": _result_words(language_of(request)),
    }
    return portal_page(request, "portal/door/log.html", values)


async def export_log(request: web.Request) -> web.StreamResponse:
    """`GET …/log/export`: download the log as JSON or CSV (`?format=csv`).

    With `?date=`, the file contains only that evening.
    """
    environment, day = request[ENVIRONMENT], date_parameter(request)
    database = environment.database
    kind: Format = "csv" if request.query.get("format") == "csv" else "json"
    log = await database.read(Export, kind, day, day)
    exported = {"date": day and day.isoformat()}
    await database.write(record_audit, actor_of(request), "door_log_exported", **exported)

    async def chunks() -> AsyncIterator[bytes]:
        yield log.begin()
        while chunk := await database.read(log.page):
            yield chunk
        yield log.end()

    name = f"door-log-{environment.name}-{day or 'all'}.{kind}"
    return await send_file(request, chunks(), _TYPES[kind], name)


def _evening_bounds(reader: Reader, day: date) -> tuple[int, int]:
    """Return the start and the end of the evening of `day`, in ms since 1970."""
    venue = get_venue(reader)
    zone = reader.zones.zone(venue.time_zone)
    begins = evening_end(day - timedelta(days=1), zone, venue.evening_ends_at)
    return begins, evening_end(day, zone, venue.evening_ends_at)
