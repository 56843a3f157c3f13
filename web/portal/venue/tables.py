"""`/portal/venue`: the tables in their order; add, edit, move, retire."""

from dataclasses import dataclass

from aiohttp import web

from appliance.actions.edit_tables import (
    add_tables,
    copy_room,
    edit_table,
    move_table,
    order_tables,
    remove_table,
)
from appliance.errors import NotFound, Refusal
from appliance.model.booking import parse_uuid
from appliance.model.venue import Slot, Table, Venue, fingerprint
from appliance.model.venue_clash import Clashes, standing_clashes
from appliance.model.venue_file import TableEntry
from appliance.model.venue_list import (
    CAPACITY_MAX,
    NAME_MAX,
    NUMBER_MAX,
    SPEND_MAX,
    TYPE_MAX,
    PastedTables,
    parse_tables,
)
from appliance.store.connection import Reader
from appliance.store.readings import find_tonight
from appliance.store.venue import (
    get_table,
    get_venue,
    list_closings,
    list_coming,
    list_slots,
    list_tables,
    list_used_tables,
)
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import language_of, portal_page, refused_in_place, see_other
from web.portal.context import HOUSE
from web.portal.forms import Form, field_error, read_form
from web.portal.venue.clashes import accepted_by, describe, id_of, saved_or_asked

TYPES = ("standard", "vip", "booth", "bar", "terrace")
_LIST_MAX = 50_000


@dataclass(frozen=True, slots=True)
class _Room:
    """The tables, and the reservations that do not fit the venue as it is."""

    venue: Venue
    tables: tuple[Table, ...]
    misfits: Clashes


async def show_tables(request: web.Request) -> web.Response:
    """`GET /portal/venue`: every table, and the field for new ones."""
    environment = request[ENVIRONMENT]
    room = await environment.database.read(_read_room)
    moved, _, steps = request.query.get("moved", "").partition(":")
    values: dict[str, object] = {
        "venue": room.venue,
        "tables": room.tables,
        "seen": fingerprint([table.id for table in room.tables]),
        "seats": sum(table.capacity_max for table in room.tables if table.bookable),
        "misfits": describe(room.misfits, language_of(request)),
        "moved": moved,
        "steps": steps,
    }
    return portal_page(request, "portal/venue/tables.html", values)


async def preview(request: web.Request) -> web.Response:
    """`POST …/preview`: what a pasted list would add, and the lines that cannot be read."""
    form = await read_form(request, takes_files=True)
    try:
        text = _list_text(form)
    except Refusal as refusal:
        return _refused_list(request, form, refusal)
    return await _preview(request, text)


async def add(request: web.Request) -> web.Response:
    """`POST …/tables`: add what was previewed; a list with a fault adds nothing."""
    form = await read_form(request, takes_files=True)
    try:
        text = _list_text(form)
    except Refusal as refusal:
        return _refused_list(request, form, refusal)
    database = request[ENVIRONMENT].database
    found = parse_tables(text, await database.read(_numbers))
    if found.faults or not found.tables:
        return await _preview(request, text, status=400)
    await database.write(add_tables, found.tables)
    return see_other(request, "/venue", "tables-added")


async def move(request: web.Request) -> web.Response:
    """`POST …/move`: one place up or down."""
    form = await read_form(request)
    table, _, steps = form.text("move", 60).partition(":")
    table_id = parse_uuid(table)
    if table_id is None or steps not in {"1", "-1"}:
        raise NotFound
    await request[ENVIRONMENT].database.write(move_table, table_id, int(steps))
    return see_other(request, f"/venue?moved={table_id}:{steps}")


async def put_in_order(request: web.Request) -> web.Response:
    """`POST …/order`: all tables in the order of `ids`."""
    form = await read_form(request)
    ids = form.lines("ids", _LIST_MAX).split()
    await request[ENVIRONMENT].database.write(order_tables, form.text("seen", 64), ids)
    return see_other(request, "/venue")


async def copy_live(request: web.Request) -> web.Response:
    """`POST …/copy-live`: the test environment gets the tables and slots of live."""
    await read_form(request)
    environment = request[ENVIRONMENT]
    if environment.name == "live":
        raise NotFound
    tables, slots = await request[HOUSE].database.read(_read_live)
    await environment.database.write(copy_room, tables, slots)
    return see_other(request, "/venue", "saved")


async def show_table(request: web.Request) -> web.Response:
    """`GET …/tables/{id}`: one table to change."""
    table, used, currency = await request[ENVIRONMENT].database.read(_read_one, id_of(request))
    values: dict[str, object] = {
        "table": table,
        "seen": fingerprint(table),
        "used": used,
        "currency": currency,
        "types": TYPES,
    }
    return portal_page(request, "portal/venue/table.html", values)


async def edit(request: web.Request) -> web.Response:
    """`POST …/tables/{id}`: save it, unless coming reservations have to be seen first."""
    form = await read_form(request)
    clashes = await request[ENVIRONMENT].database.write(
        edit_table, id_of(request), form.text("seen", 64), _entry(form), accepted_by(form)
    )
    return await saved_or_asked(request, clashes, "/venue")


async def remove(request: web.Request) -> web.Response:
    """`POST …/tables/{id}/remove`: one that was never booked goes."""
    form = await read_form(request)
    seen = form.text("seen", 64)
    await request[ENVIRONMENT].database.write(remove_table, id_of(request), seen)
    return see_other(request, "/venue", "saved")


def _list_text(form: Form) -> str:
    text = form.lines("file", _LIST_MAX) or form.lines("list", _LIST_MAX)
    if not text:
        raise field_error("list", "au moins une ligne.", "at least one line.")
    return text


def _refused_list(request: web.Request, form: Form, refusal: Refusal) -> web.Response:
    """The fields for a list once more, with what was typed."""
    values: dict[str, object] = {
        "text": form.typed().get("list", ""),
        "found": PastedTables((), ()),
        **refused_in_place(refusal, language_of(request), ("list", "file")),
    }
    return portal_page(request, "portal/venue/preview.html", values, refusal.status)


async def _preview(request: web.Request, text: str, status: int = 200) -> web.Response:
    found = parse_tables(text, await request[ENVIRONMENT].database.read(_numbers))
    values: dict[str, object] = {"text": text, "found": found}
    return portal_page(request, "portal/venue/preview.html", values, status)


def _entry(form: Form) -> TableEntry:
    number = form.text("number", NUMBER_MAX)
    return TableEntry(
        number=number,
        name=form.text("name", NAME_MAX) or number,
        capacity_min=form.whole("capacity_min", 1, CAPACITY_MAX),
        capacity_max=form.whole("capacity_max", 1, CAPACITY_MAX),
        minimum_spend=form.whole("minimum_spend", 0, SPEND_MAX),
        type=form.text("type", TYPE_MAX),
        bookable=form.ticked("bookable"),
    )


def _read_room(reader: Reader) -> _Room:
    tables = list_tables(reader)
    coming = list_coming(reader, find_tonight(reader).isoformat())
    misfits = standing_clashes(coming, tables, list_slots(reader), list_closings(reader))
    return _Room(get_venue(reader), tuple(tables), misfits)


def _numbers(reader: Reader) -> frozenset[str]:
    return frozenset(table.number for table in list_tables(reader))


def _read_live(reader: Reader) -> tuple[list[Table], list[Slot]]:
    return list_tables(reader), list_slots(reader)


def _read_one(reader: Reader, table_id: str) -> tuple[Table, bool, str]:
    table = get_table(reader, table_id)
    return table, table_id in list_used_tables(reader), get_venue(reader).currency
