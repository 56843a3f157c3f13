"""The page `/portal/venue`: tables and their order, slots, closing days, rules and policies.

If a change affects future reservations, the page lists them and asks for confirmation. The test
environment always has the live venue's tables, slots, closing days and rules.
"""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import groupby
from typing import Any, TypeVar

from aiohttp import web

from appliance.box import Box
from appliance.core.encodings import ENCODINGS, decode_file
from appliance.core.errors import (
    Faults,
    InvalidDate,
    NotFound,
    field_invalid,
)
from appliance.core.i18n import mark as _
from appliance.core.text import fold
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT
from appliance.reservations.request import parse_uuid
from appliance.venue.clashes import Clashes, clash_mark, find_clashes
from appliance.venue.edit import (
    add_slot,
    add_tables,
    close_days,
    copy_furniture,
    edit_slot,
    edit_table,
    edit_venue,
    move_table,
    open_days,
    order_tables,
    read_furniture,
    remove_slot,
    remove_table,
)
from appliance.venue.model import (
    Slot,
    find_tonight,
    fingerprint,
    get_slot,
    get_table,
    get_venue,
    interval,
    list_closings,
    list_slots,
    list_tables,
    list_used_tables,
    overlapping_slots,
    parse_date,
)
from appliance.venue.table_list import PastedTables, parse_tables
from appliance.venue.venue_file import MODES, NAME_MAX, RULES, STATUSES, UNFURNISHED
from web.portal.box import steps_of
from web.portal.cookies import BOX
from web.portal.forms import FORM, Form
from web.portal.guard import id_of
from web.portal.responses import (
    REFUSED,
    faults_of,
    language_of,
    portal_page,
    refusal_text,
    see_other,
)

_WEEK = (1, 2, 3, 4, 5, 6, 0)  # starts with Monday; 0 is Sunday
_TYPES = ("standard", "vip", "booth", "bar", "terrace")
_LIST_MAX = 50_000
_TEXTS = ("cancellation", "dressCode")
_NUMBERS = {"lateArrivalMinutes": (0, 24 * 60), "minimumAge": (0, 120)}
_POLICIES = (*_TEXTS, *_NUMBERS)
_RULES = {
    "cancel_hours": _("Guests can cancel until (hours before)"),
    "reminder_hours": _("Email reminder to guests (hours before; 0: none)"),
    "early_minutes": _("Early entry allowed (minutes before)"),
    "payment_hours": _("Payment in advance is due within (hours; 0: no deadline)"),
    "contact_days": _("Keep names, contact details and notes (days after the evening)"),
}
_PAIR_MAX = 1000

T = TypeVar("T")


async def show_tables(request: web.Request) -> web.Response:
    """`GET /portal/venue`: show all tables and a field for pasting a list of new tables."""
    values = await request[ENVIRONMENT].database.read(_read_tables)
    moved, _, steps = request.query.get("moved", "").partition(":")
    values |= {"moved": moved, "move_steps": steps, "steps": await steps_of(request)}
    return portal_page(request, "portal/venue/tables.html", values)


def _list_page(
    request: web.Request, text: str, found: PastedTables, *, encoding: str = "", status: int = 200
) -> web.Response:
    """Return a page with a list, the tables that it contains and its invalid lines.

    `encoding` is what the encoding of an uploaded file is called.
    """
    language = language_of(request)
    faults = [
        (
            line,
            typed,
            [(fault.field, refusal_text(fault, language)) for fault in faults_of(invalid)],
        )
        for line, typed, invalid in found.faults
    ]
    # Consecutive tables that differ only in number and name are shown as one entry.
    runs = groupby(
        found.tables, lambda t: (t.capacity_min, t.capacity_max, t.minimum_spend, t.type)
    )
    currency = request[ENVIRONMENT].database.peek(get_venue).currency
    values = {"text": text, "found": found, "faults": faults, "encoding": encoding,
              "runs": [list(run) for _, run in runs], "currency": currency}  # fmt: skip
    return portal_page(request, "portal/venue/preview.html", values, status)


async def show_list(request: web.Request) -> web.Response:
    """Show the entered list again after an error."""
    return _list_page(request, request[FORM].typed()["list"], PastedTables((), ()))


async def preview(request: web.Request, form: Form) -> web.Response:
    """`POST …/preview`: show the tables that a pasted list would add and its invalid lines."""
    text, encoding = _read_list(form)
    return _list_page(request, text, await _parse(request, text), encoding=encoding)


async def add(request: web.Request, form: Form) -> web.Response:
    """`POST …/tables`: add the listed tables, or none of them if any line is invalid."""
    text, encoding = _read_list(form)
    found = await _parse(request, text)
    if found.faults or not found.tables:
        return _list_page(request, text, found, encoding=encoding, status=400)
    await _write(request, add_tables, found.tables)
    return see_other(request, "/venue", "tables-added")


def _read_list(form: Form) -> tuple[str, str]:
    """Return the uploaded or pasted list, and the name of the file's encoding.

    Raises ValidationError if the list is empty, or the file is not text or too long.
    """
    text, encoding, raw = form.lines("list", _LIST_MAX), "", form.file("file")
    if raw.strip():
        try:
            decoded, name = decode_file(raw)
        except ValueError:
            raise field_invalid("file", "this file is not text: save the sheet as CSV.") from None
        text, encoding = Form({"file": decoded}).lines("file", _LIST_MAX), ENCODINGS[name]
    if not text:
        raise field_invalid("list", "please give at least one line.")
    return text, encoding


async def _parse(request: web.Request, text: str) -> PastedTables:
    return parse_tables(text, await request[ENVIRONMENT].database.read(_numbers))


async def move(request: web.Request, form: Form) -> web.Response:
    """`POST …/move`: move a table up or down one place in the list."""
    table, _, steps = form.text("move", 60).partition(":")
    table_id = parse_uuid(table)
    if table_id is None or steps not in {"1", "-1"}:
        raise NotFound
    await _write(request, move_table, table_id, int(steps))
    return see_other(request, f"/venue?moved={table_id}:{steps}")


async def put_in_order(request: web.Request, form: Form) -> web.Response:
    """`POST …/order`: sort all tables in the order of the submitted ids."""
    ids = form.lines("ids", _LIST_MAX).split()
    await _write(request, order_tables, form.text("seen", 64), ids)
    return see_other(request, "/venue")


async def show_table(request: web.Request) -> web.Response:
    """`GET …/tables/{id}`: show the form for editing a table."""
    values = await request[ENVIRONMENT].database.read(_read_table, id_of(request))
    return portal_page(request, "portal/venue/table.html", {**values, "types": _TYPES})


async def edit(request: web.Request, form: Form) -> web.Response:
    """`POST …/tables/{id}`: save a table, or ask for confirmation if reservations are affected."""
    table_id, seen = id_of(request), form.text("seen", 64)
    entry = form.fill(request[ENVIRONMENT].database.peek(get_table, table_id))
    entry = replace(entry, name=entry.name or entry.number)
    return await _save_or_ask(request, "/venue", edit_table, table_id, seen, entry)


async def remove(request: web.Request, form: Form) -> web.Response:
    """`POST …/tables/{id}/remove`: remove a table that has never been booked."""
    await _write(request, remove_table, id_of(request), form.text("seen", 64))
    return see_other(request, "/venue", "saved")


async def show_slots(request: web.Request) -> web.Response:
    """`GET …/slots`: list all slots, earliest in the evening first, and a form to add one."""
    values = await request[ENVIRONMENT].database.read(_read_slots)
    values |= {**_days(request), "steps": await steps_of(request)}
    return portal_page(request, "portal/venue/slots.html", values)


async def show_slot(request: web.Request) -> web.Response:
    """`GET …/slots/{id}`: show the form for editing a slot."""
    slot = await request[ENVIRONMENT].database.read(get_slot, id_of(request))
    values = {"slot": slot, "seen": fingerprint(slot), **_days(request)}
    return portal_page(request, "portal/venue/slot.html", values)


async def add_one_slot(request: web.Request, form: Form) -> web.Response:
    """`POST …/slots`: add a slot."""
    await _write(request, add_slot, _slot(form))
    return see_other(request, "/venue/slots", "saved")


async def edit_one_slot(request: web.Request, form: Form) -> web.Response:
    """`POST …/slots/{id}`: save a slot, or ask for confirmation if reservations are affected."""
    return await _save_or_ask(
        request, "/venue/slots", edit_slot, id_of(request), form.text("seen", 64), _slot(form)
    )


async def remove_one_slot(request: web.Request, form: Form) -> web.Response:
    """`POST …/slots/{id}/remove`: remove a slot, or first ask for confirmation.

    Asks for confirmation if reservations are affected.
    """
    seen = form.text("seen", 64)
    return await _save_or_ask(request, "/venue/slots", remove_slot, id_of(request), seen)


async def show_closings(request: web.Request) -> web.Response:
    """`GET …/closings`: list current and future closings and the reservations they affect."""
    values = await request[ENVIRONMENT].database.read(_read_closings)
    return portal_page(request, "portal/venue/closings.html", values)


async def close(request: web.Request, form: Form) -> web.Response:
    """`POST …/closings`: add a closing, or ask for confirmation if reservations are affected."""
    first = parse_date(form.text("first", 10))
    last = parse_date(form.text("last", 10)) if form.text("last", 10) else first
    if first is None or last is None:
        raise InvalidDate(field="first")
    if last < first:
        raise field_invalid("last", "the last day must not be before the first.")
    reason = form.text("reason", NAME_MAX)
    return await _save_or_ask(request, "/venue/closings", close_days, first, last, reason)


async def reopen(request: web.Request, _form: Form) -> web.Response:
    """`POST …/closings/{id}/remove`: delete a closing, which makes its days bookable again."""
    await _write(request, open_days, id_of(request))
    return see_other(request, "/venue/closings", "reopened")


async def show_rules(request: web.Request) -> web.Response:
    """`GET …/rules`: show the form for the venue's description, booking rules and policies."""
    stored = request[ENVIRONMENT].database.peek(get_venue)
    venue, typed = stored, request[FORM].typed() if REFUSED in request else {}
    if stored.name == UNFURNISHED.name:  # on a new box, saving the name also activates the venue
        venue = replace(stored, name="", slug="", status="active")
    unticked = {field.name: "" for field in fields(venue) if field.type is bool}
    stored_values = {field.name: getattr(venue, field.name) for field in fields(venue)}
    values = {
        "venue": {**stored_values, **unticked, **typed} if typed else venue,
        "seen": typed.get("seen") or fingerprint(stored),
        "statuses": STATUSES,
        "booking_url": f"{request[ENVIRONMENT].links.base}/book",
        "numbers": {
            name: (language_of(request).gettext(label), *RULES[name])
            for name, label in _RULES.items()
        },
        "modes": MODES,
        "policies": dict.fromkeys(_POLICIES, "") | (stored.policies or {}) | typed,
        "steps": await steps_of(request),
    }
    return portal_page(request, "portal/venue/rules.html", values)


async def save_rules(request: web.Request, form: Form) -> web.Response:
    """`POST …/rules`: save the venue's name, status, booking rules, times, address and policies."""
    stored, faults = request[ENVIRONMENT].database.peek(get_venue), Faults()
    edited = faults.read(form.fill, stored)
    policies = _policies(form, stored.policies or {}, faults)
    faults.raise_all()
    slug, currency = edited.slug or _make_slug(edited.name), edited.currency.upper()
    edited = replace(edited, slug=slug, currency=currency, policies=policies or None)
    await _write(request, edit_venue, form.text("seen", 64), edited)
    return see_other(request, "/venue/rules", "saved")


def _policies(form: Form, stored: dict[str, Any], faults: Faults) -> dict[str, Any]:
    """Return the policies of the form and those of other names, which come from a venue file.

    Empty fields are left out.
    """
    texts = {name: faults.read(form.lines, name, _PAIR_MAX) for name in _TEXTS}
    numbers = {
        name: faults.read(form.integer, name, *limits)
        for name, limits in _NUMBERS.items()
        if form.typed()[name].strip()
    }
    others = {name: value for name, value in stored.items() if name not in _POLICIES}
    return {name: text for name, text in texts.items() if text} | numbers | others


def _make_slug(name: str) -> str:
    """Return a URL slug for the name: `riad-atlas` for `Riad Âtlas`.

    The slug of a name without Latin letters or digits is `venue`.
    """
    return (
        re.sub(r"[^a-z0-9]+", "-", fold(name).replace("'", " ")).strip("-")[:60].strip("-")
        or "venue"
    )


async def _save_or_ask(
    request: web.Request, back: str, action: Callable[..., Clashes], *args: object
) -> web.Response:
    """Run `action` and redirect to `back`, or ask for confirmation if reservations are affected.

    The form field `accepted` identifies the affected reservations that staff have confirmed.
    """
    form = request[FORM]
    clashes = await _write(request, action, *args, form.text("accepted", 64) or None)
    if not clashes:
        return see_other(request, back, "saved")
    values = {
        "clashes": clashes,
        "sent": [(name, value) for name, value in form.pairs() if name != "accepted"],
        "mark": clash_mark(clashes),
        "back": back,
        "action": request.path,
    }
    return portal_page(request, "portal/venue/clashes.html", values, status=409)


async def _write(request: web.Request, action: Callable[..., T], *args: object) -> T:
    """Run `action`, then copy the venue to the test environment."""
    box = request.app[BOX]
    result = await box.live.database.write(action, *args)
    await follow_live_venue(box)
    return result


async def follow_live_venue(box: Box) -> None:
    """Copy the venue, its rules, tables, slots and closings to the test environment."""
    furniture = await box.live.database.read(read_furniture)
    await box.test.database.write(copy_furniture, furniture)


def _days(request: web.Request) -> dict[str, object]:
    """Return template values for the weekday check boxes.

    `week` contains (number, short name) for each day, starting with Monday. `ticked` contains the
    numbers that were selected in a rejected form, or is None if no form with days was rejected.
    """
    has_days = REFUSED in request and "start" in request[FORM].typed()
    names = language_of(request).locale.days["stand-alone"]["abbreviated"]
    return {
        "week": [(day, str(names[(day - 1) % 7])) for day in _WEEK],
        "ticked": request[FORM].all("days") if has_days else None,
    }


def _slot(form: Form) -> Slot:
    start, end = form.text("start"), form.text("end")
    return Slot("", form.text("name") or start, start, end, days_of_week=form.days())


def _read_tables(reader: Reader) -> dict[str, Any]:
    tables = list_tables(reader)
    return {
        "venue": get_venue(reader),
        "tables": tables,
        "seen": fingerprint([table.id for table in tables]),
        "seats": sum(table.capacity_max for table in tables if table.bookable),
        # Future reservations that do not match the current tables, slots and closings.
        "misfits": find_clashes(reader),
    }


def _numbers(reader: Reader) -> frozenset[str]:
    return frozenset(table.number for table in list_tables(reader))


def _read_table(reader: Reader, table_id: str) -> dict[str, Any]:
    table = get_table(reader, table_id)
    return {
        "table": table,
        "seen": fingerprint(table),
        "used": table_id in list_used_tables(reader),
        "currency": get_venue(reader).currency,
    }


def _read_slots(reader: Reader) -> dict[str, Any]:
    ends = get_venue(reader).evening_ends_at
    slots = sorted(list_slots(reader), key=lambda slot: interval(slot, ends))
    return {"slots": slots, "overlaps": overlapping_slots(slots, ends), "evening_ends_at": ends}


def _read_closings(reader: Reader) -> dict[str, object]:
    tonight = find_tonight(reader).isoformat()
    closed = [clash for clash in find_clashes(reader) if clash.kind == "closed"]
    return {
        "tonight": tonight,
        "closings": [
            (closing, [clash for clash in closed if closing.holds(clash.reservation.date)])
            for closing in list_closings(reader)
            if closing.last >= tonight
        ],
    }
