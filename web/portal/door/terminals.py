"""`/portal/door`: terminals, readers and conflicts on one page; one terminal on its own."""

from dataclasses import dataclass

from aiohttp import web

from appliance.actions.acknowledge_conflict import acknowledge_conflict
from appliance.actions.edit_terminal import edit_terminal, terminal_mark
from appliance.actions.revoke_terminal import revoke_terminal
from appliance.errors import NotFound
from appliance.model.booking import parse_uuid
from appliance.model.conflict import Conflict
from appliance.model.terminal import NAME_MAX, PORTAL_TERMINAL_ID, ROLES, Terminal
from appliance.store.conflicts import list_open_conflicts
from appliance.store.connection import Reader
from appliance.store.pairings import Offer, list_open_offers
from appliance.store.signing_keys import KeyAge, list_key_ages
from appliance.store.terminals import get_terminal, list_terminals
from terminal_bridge.context import ENVIRONMENT, READERS
from web.portal.answer import language_of, portal_page, see_other
from web.portal.door.words import describe_version, instants_of, result_words, role_words
from web.portal.forms import Form, field_error, read_form
from web.portal.guard import staff_of
from web.portal.sent_twice import new_token


@dataclass(frozen=True, slots=True)
class _Door:
    terminals: tuple[Terminal, ...]
    offers: tuple[Offer, ...]
    conflicts: tuple[Conflict, ...]
    keys: tuple[KeyAge, ...]


async def show_door(request: web.Request) -> web.Response:
    """`GET /portal/door`."""
    environment, language = request[ENVIRONMENT], language_of(request)
    door = await environment.database.read(_read)
    readers = [
        state for state in request.app[READERS].states if state.environment == environment.name
    ]
    values: dict[str, object] = {
        "terminals": [one for one in door.terminals if one.revoked_at is None],
        "revoked": [one for one in door.terminals if one.revoked_at is not None],
        "offers": door.offers,
        "conflicts": door.conflicts,
        "readers": readers,
        "roles": role_words(language),
        "results": result_words(language),
        "in_words": instants_of(request),
        "token": new_token(request),
        "version_of": lambda one: describe_version(one.version),
    }
    return portal_page(request, "portal/door/door.html", values)


async def show_terminal(request: web.Request) -> web.Response:
    """`GET …/terminals/{id}`: one terminal to rename, to trust more or less, to revoke."""
    terminal = request[ENVIRONMENT].database.peek(get_terminal, terminal_id_of(request))
    values: dict[str, object] = {
        "terminal": terminal,
        "seen": terminal_mark(terminal.name, terminal.role),
        "roles": role_words(language_of(request)),
        "in_words": instants_of(request),
        "version": describe_version(terminal.version),
    }
    return portal_page(request, "portal/door/terminal.html", values)


async def edit(request: web.Request) -> web.Response:
    """`POST …/terminals/{id}`: name and role, from its next request on."""
    terminal_id, form = terminal_id_of(request), await read_form(request)
    name, role = read_terminal(form)
    await request[ENVIRONMENT].database.write(
        edit_terminal, terminal_id, form.text("seen", 64), name, role, actor=actor_of(request)
    )
    return see_other(request, "/door", "saved")


async def revoke(request: web.Request) -> web.Response:
    """`POST …/terminals/{id}/revoke`: its next request is refused."""
    terminal_id = terminal_id_of(request)
    await read_form(request)
    database = request[ENVIRONMENT].database
    await database.write(revoke_terminal, terminal_id, actor=actor_of(request))
    return see_other(request, "/door", "terminal-revoked")


async def acknowledge(request: web.Request) -> web.Response:
    """`POST …/conflicts/{id}/acknowledge`: somebody has dealt with it."""
    conflict_id = parse_uuid(request.match_info["id"])
    if conflict_id is None:
        raise NotFound
    await read_form(request)
    database = request[ENVIRONMENT].database
    await database.write(acknowledge_conflict, conflict_id, actor=actor_of(request))
    return see_other(request, "/door", "conflict-seen")


def read_terminal(form: Form) -> tuple[str, str]:
    """Name and role from a form; ValidationError."""
    name, role = form.text("name", NAME_MAX), form.text("role")
    if not name:
        raise field_error("name", "un nom.", "a name.")
    if role not in ROLES:
        raise field_error("role", "un rôle de la liste.", "one of the list.")
    return name, role


def terminal_id_of(request: web.Request) -> str:
    """The id in the path; NotFound for what is no terminal at a door."""
    terminal_id = parse_uuid(request.match_info["id"])
    if terminal_id is None or terminal_id == PORTAL_TERMINAL_ID:
        raise NotFound
    return terminal_id


def actor_of(request: web.Request) -> str:
    """Who does it, as the logs say."""
    return f"staff:{staff_of(request).id}"


def _read(reader: Reader) -> _Door:
    return _Door(
        tuple(list_terminals(reader)),
        tuple(list_open_offers(reader)),
        tuple(list_open_conflicts(reader)),
        tuple(list_key_ages(reader)),
    )
