"""The steps that furnish the venue: itself, its tables, its slots.

The test environment follows as long as nobody made it different: it is then somebody's work.
"""

import re
import unicodedata
from dataclasses import replace

from aiohttp import web

from appliance.actions.edit_slots import add_slot
from appliance.actions.edit_tables import add_tables, copy_room
from appliance.actions.set_up import name_venue
from appliance.errors import Refusal
from appliance.model.venue import Slot, Table, Venue, fingerprint
from appliance.model.venue_file import UNFURNISHED, SlotEntry
from appliance.model.venue_list import PastedTables, parse_tables
from appliance.store.connection import Reader
from appliance.store.venue import get_venue, list_slots, list_tables
from web.portal.answer import see_other
from web.portal.context import BOX, HOUSE
from web.portal.forms import Form, field_error, read_form
from web.portal.setup.progress import go_on, step_page

ZONES = (
    "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Algiers", "Africa/Tunis", "Africa/Dakar",
    "Africa/Abidjan", "Africa/Cairo", "Europe/Paris", "Europe/Brussels", "Europe/Madrid",
    "Europe/Lisbon", "Europe/London", "Asia/Dubai", "America/Montreal",
)  # fmt: skip
_LIST_MAX = 50_000
CURRENCIES = ("MAD", "EUR", "USD", "GBP", "TND", "DZD", "XOF", "AED")
_VENUE_FIELDS = ("name", "slug", "time_zone", "currency", "reservation_mode", "auto_confirm")
_SHORT = re.compile(
    r"([^,;\t]*?)\s*[,;:\t]\s*(\d{1,4})(?:\s*(?:[-–—]|à|to)\s*(\d{1,4}))?"
    r"\s*(?:places?|pers(?:onnes?)?\.?|couverts?|seats?|guests?|مقاعد|أشخاص)?\s*"
)


async def show_venue(request: web.Request) -> web.Response:
    """`GET /portal/setup/venue`: name, zone, currency, how reservations are taken."""
    venue = await request[HOUSE].database.read(get_venue)
    fresh = venue.name == UNFURNISHED.name
    shown = {
        "name": "" if fresh else venue.name,
        "slug": "" if fresh else venue.slug,
        "time_zone": venue.time_zone,
        "currency": venue.currency,
        "reservation_mode": venue.reservation_mode,
        "auto_confirm": "1" if venue.auto_confirm else "",
    }
    return await _venue_page(request, shown)


async def save_venue(request: web.Request) -> web.StreamResponse:
    """`POST /portal/setup/venue`: once it has a name, the box takes reservations.

    What this step does not ask for stays as it is.
    """
    form, box = await read_form(request), request.app[BOX]
    venue = await box.live.database.read(get_venue)
    test = await box.test.database.read(get_venue)
    try:
        wished = _wished(venue, form)
        await box.live.database.write(name_venue, wished, form.text("seen"))
        if replace(test, id=venue.id) == venue:
            await box.test.database.write(name_venue, wished)
    except Refusal as refusal:
        return await _venue_page(request, form.typed(), refusal)
    return await go_on(request, "venue", "saved")


async def show_tables(request: web.Request) -> web.Response:
    """`GET /portal/setup/tables`: many at once."""
    return await _tables_page(request)


async def save_tables(request: web.Request) -> web.StreamResponse:
    """`POST /portal/setup/tables`: shows what was understood, and adds it when asked to."""
    form, box = await read_form(request, takes_files=True), request.app[BOX]
    try:
        text = _list_text(form)
    except Refusal as refusal:
        return await _tables_page(request, form.typed().get("tables", ""), refusal=refusal)
    taken = {table.number for table in await box.live.database.read(list_tables)}
    pasted = parse_tables(tidy_lines(text), frozenset(taken))
    if form.text("do") != "add" or pasted.faults or not pasted.tables:
        return await _tables_page(request, text, pasted)
    follows = await _test_follows(request)
    await box.live.database.write(add_tables, pasted.tables)
    if follows:
        await _copy_to_test(request)
    return await go_on(request, "tables", "saved")


async def show_slots(request: web.Request) -> web.Response:
    """`GET /portal/setup/slots`: when guests may come."""
    return await _slots_page(request)


async def save_slot(request: web.Request) -> web.StreamResponse:
    """`POST /portal/setup/slots`: one slot more; the page stays for the next."""
    form, box = await read_form(request), request.app[BOX]
    follows = await _test_follows(request)
    try:
        await box.live.database.write(add_slot, _slot(form))
    except Refusal as refusal:
        return await _slots_page(request, form, refusal)
    if follows:
        await _copy_to_test(request)
    return see_other(request, "/setup/slots", "saved")


async def pass_slots(request: web.Request) -> web.StreamResponse:
    """`POST /portal/setup/slots/done`: that was the last one."""
    return await go_on(request, "slots")


def make_slug(name: str) -> str:
    """`riad-atlas` of `Riad Âtlas`; `venue` where no letter of it is Latin."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].strip("-") or "venue"


def tidy_lines(text: str) -> str:
    """`T1–T12, 2–4 places` as the columns of a list of tables; other lines as they are."""
    return "\n".join(_tidy(line) for line in text.split("\n"))


def _tidy(line: str) -> str:
    found = _SHORT.fullmatch(line.strip())
    if found is None:
        return line
    number, fewest, most = found.groups()
    return f"{number};;{fewest};{most}" if most else f"{number};;1;{fewest}"


def _wished(venue: Venue, form: Form) -> Venue:
    name = form.text("name")
    return replace(
        venue,
        name=name,
        slug=(form.text("slug", 100) or make_slug(name)).lower(),
        reservation_mode=form.text("reservation_mode"),
        auto_confirm=form.ticked("auto_confirm"),
        currency=form.text("currency").upper(),
        time_zone=form.text("time_zone", 60),
    )


def _list_text(form: Form) -> str:
    text = form.lines("file", _LIST_MAX) or form.lines("tables", _LIST_MAX)
    if not text:
        raise field_error("tables", "au moins une ligne.", "at least one line.")
    return text


def _slot(form: Form) -> SlotEntry:
    start = form.text("start", 10)
    return SlotEntry(
        name=form.text("name", 100) or start,
        start=start,
        end=form.text("end", 10),
        days_of_week=_days(form),
    )


def _days(form: Form) -> tuple[int, ...]:
    days = form.all("days")
    if not all(day in set("0123456") for day in days):
        raise field_error("days", "des jours de la semaine.", "weekdays.")
    return tuple(sorted({int(day) for day in days}))


async def _test_follows(request: web.Request) -> bool:
    """Whether the test environment still has the same room, or none at all."""
    box = request.app[BOX]
    tables, slots = await box.test.database.read(_read_room)
    if not tables and not slots:
        return True
    room = await box.live.database.read(_read_room)
    return _without_ids(room) == _without_ids((tables, slots))


def _without_ids(room: tuple[list[Table], list[Slot]]) -> list[list[Table] | list[Slot]]:
    """In an order of their own: that of slots is nobody's choice."""
    tables, slots = room
    return [
        [replace(table, id="") for table in tables],
        sorted((replace(slot, id="") for slot in slots), key=lambda s: (s.start, s.days_of_week)),
    ]


async def _copy_to_test(request: web.Request) -> None:
    """The test environment has the same room, for whoever builds against the box."""
    box = request.app[BOX]
    tables, slots = await box.live.database.read(_read_room)
    await box.test.database.write(copy_room, tables, slots)


def _read_room(reader: Reader) -> tuple[list[Table], list[Slot]]:
    return list_tables(reader), list_slots(reader)


async def _venue_page(
    request: web.Request, typed: dict[str, str], refusal: Refusal | None = None
) -> web.Response:
    stored = await request[HOUSE].database.read(get_venue)
    values: dict[str, object] = {
        "typed": {**dict.fromkeys(_VENUE_FIELDS, ""), **typed},
        "seen": fingerprint(stored),
        "zones": ZONES,
        "currencies": CURRENCIES,
    }
    return await step_page(request, "venue", values, refusal, _VENUE_FIELDS)


async def _tables_page(
    request: web.Request,
    text: str = "",
    pasted: PastedTables | None = None,
    refusal: Refusal | None = None,
) -> web.Response:
    tables = await request[HOUSE].database.read(list_tables)
    values: dict[str, object] = {"tables": tables, "text": text, "pasted": pasted}
    answer = await step_page(request, "tables", values, refusal, ("tables", "file"))
    if pasted is not None and pasted.faults:
        answer.set_status(400)
    return answer


async def _slots_page(
    request: web.Request, form: Form | None = None, refusal: Refusal | None = None
) -> web.Response:
    slots = await request[HOUSE].database.read(list_slots)
    values: dict[str, object] = {
        "slots": slots,
        "typed": None if form is None else form.typed(),
        "ticked": () if form is None else form.all("days"),
    }
    return await step_page(request, "slots", values, refusal, ("name", "start", "end", "days"))
