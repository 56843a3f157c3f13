"""`/portal/venue/slots`: when tables may be booked, and on which weekdays."""

from collections.abc import Iterable

from aiohttp import web

from appliance.actions.edit_slots import add_slot, edit_slot, remove_slot
from appliance.i18n import Language
from appliance.model.evening import interval, minutes
from appliance.model.venue import Slot, fingerprint
from appliance.model.venue_clash import overlapping_slots
from appliance.model.venue_file import SlotEntry
from appliance.model.venue_list import NAME_MAX
from appliance.store.connection import Reader
from appliance.store.venue import get_slot, get_venue, list_slots
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import language_of, portal_page, see_other
from web.portal.forms import Form, field_error, read_form
from web.portal.sent_twice import do_once, new_token
from web.portal.venue.clashes import accepted_by, id_of, saved_or_asked

_WEEK = (1, 2, 3, 4, 5, 6, 0)  # from Monday; 0 = Sunday


async def show_slots(request: web.Request) -> web.Response:
    """`GET …/slots`: every slot in the order of the evening, and a form for a new one."""
    language = language_of(request)
    slots, ends = await request[ENVIRONMENT].database.read(_read)
    values: dict[str, object] = {
        "slots": [(slot, days_in_words(slot.days_of_week, language)) for slot in slots],
        "overlaps": overlapping_slots(slots, ends),
        "evening_ends_at": ends,
        "week": week(language),
        "token": new_token(request),
        "is_late": lambda slot: minutes(slot.end) <= minutes(slot.start),
    }
    return portal_page(request, "portal/venue/slots.html", values)


async def show_slot(request: web.Request) -> web.Response:
    """`GET …/slots/{id}`: one slot to change."""
    slot = await request[ENVIRONMENT].database.read(get_slot, id_of(request))
    values: dict[str, object] = {
        "slot": slot,
        "seen": fingerprint(slot),
        "week": week(language_of(request)),
    }
    return portal_page(request, "portal/venue/slot.html", values)


async def add(request: web.Request) -> web.Response:
    """`POST …/slots`: a new slot."""
    form = await read_form(request)
    entry, database = _entry(form), request[ENVIRONMENT].database
    await do_once(request, form, lambda: database.write(add_slot, entry))
    return see_other(request, "/venue/slots", "saved")


async def edit(request: web.Request) -> web.Response:
    """`POST …/slots/{id}`: save it, unless coming reservations have to be seen first."""
    form = await read_form(request)
    clashes = await request[ENVIRONMENT].database.write(
        edit_slot, id_of(request), form.text("seen", 64), _entry(form), accepted_by(form)
    )
    return await saved_or_asked(request, clashes, "/venue/slots")


async def remove(request: web.Request) -> web.Response:
    """`POST …/slots/{id}/remove`: offer it no more; the same question first."""
    form = await read_form(request)
    clashes = await request[ENVIRONMENT].database.write(
        remove_slot, id_of(request), form.text("seen", 64), accepted_by(form)
    )
    return await saved_or_asked(request, clashes, "/venue/slots")


def week(language: Language) -> list[tuple[int, str]]:
    """The weekdays from Monday on, as our numbers and short words."""
    return [(day, _day(day, language)) for day in _WEEK]


def days_in_words(days: Iterable[int], language: Language) -> str:
    """`Every day`, or the short names from Monday on."""
    chosen = set(days)
    if chosen == set(_WEEK):
        return language.gettext("Every day")
    return " · ".join(_day(day, language) for day in _WEEK if day in chosen)


def _day(day: int, language: Language) -> str:
    return str(language.locale.days["stand-alone"]["abbreviated"][(day - 1) % 7])


def _entry(form: Form) -> SlotEntry:
    days = form.all("days")
    if not all(day in {"0", "1", "2", "3", "4", "5", "6"} for day in days):
        raise field_error("days", "des jours de la semaine.", "weekdays.")
    return SlotEntry(
        name=form.text("name", NAME_MAX),
        start=form.text("start", 5),
        end=form.text("end", 5),
        days_of_week=tuple(int(day) for day in days),
    )


def _read(reader: Reader) -> tuple[list[Slot], str]:
    ends = get_venue(reader).evening_ends_at
    return sorted(list_slots(reader), key=lambda slot: interval(slot, ends)), ends
