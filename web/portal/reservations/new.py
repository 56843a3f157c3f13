"""`/portal/reservations/new`: somebody of the house writes a reservation down."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from aiohttp import web

from appliance.actions.amend_reservation import Amendment, check_amendment
from appliance.actions.enter import enter_by_staff
from appliance.errors import InvalidDate, InvalidSlot, InvalidTable, Refusal
from appliance.model.booking import (
    EMAIL_MAX,
    NAME_MAX,
    NOTES_MAX,
    PHONE_MAX,
    Booking,
    parse_uuid,
)
from appliance.model.evening import is_slot, minutes, parse_date
from appliance.model.venue import Slot, Table
from appliance.store.connection import Reader
from appliance.store.readings import find_tonight
from appliance.store.venue import get_venue
from terminal_bridge.context import ENVIRONMENT
from web.languages import Language
from web.portal.answer import language_of, portal_page, see_other
from web.portal.forms import Form, read_form
from web.portal.guard import staff_of
from web.portal.reservations.offers import offer_tables, slots_of
from web.portal.reservations.words import refusal_line
from web.rendering import LANGUAGES

_PARTY = 2
_PARTY_MAX = 10_000
_DIGITS_MAX = 5


@dataclass(frozen=True, slots=True)
class _Offer:
    """What can be chosen for an evening, a slot and a party."""

    day: date
    tonight: date
    slots: tuple[Slot, ...]
    slot: str | None
    tables: tuple[Table, ...]


async def show_new(request: web.Request) -> web.Response:
    """`GET`: the form, filled with `?date=`, `?slot=`, `?table=` and `?guests=`."""
    known = ("date", "slot", "table", "guests")
    asked = {name: request.query[name] for name in known if name in request.query}
    return await _page(request, asked)


async def make_new(request: web.Request) -> web.StreamResponse:
    """`POST`: the reservation, or with `offer` what is free for what was chosen so far."""
    form = await read_form(request)
    if form.ticked("offer"):
        return await _page(request, form.typed())
    environment, language = request[ENVIRONMENT], language_of(request)
    way: Literal["keep", "send"] = "keep" if environment.name == "test" else "send"
    try:
        made = await environment.database.write(
            enter_by_staff,
            _read_booking(form, language),
            actor=f"staff:{staff_of(request).id}",
            letter=way if form.ticked("letter") else None,
            vip=form.ticked("vip"),
        )
    except Refusal as refusal:
        problem = refusal_line(refusal, language)
        return await _page(request, form.typed(), problem, refusal.status)
    with_letter = form.ticked("letter") and made.customer_email is not None
    return see_other(
        request, f"/reservations/{made.id}", "entered-letter" if with_letter else "entered"
    )


def _read_booking(form: Form, language: Language) -> Booking:
    """What was typed, or the refusal of the first field that is wrong."""
    day = parse_date(form.text("date"))
    if day is None:
        raise InvalidDate(field="date")
    slot = form.text("slot") or None
    if slot is not None and not is_slot(slot):
        raise InvalidSlot(field="slot")
    table_id = parse_uuid(form.text("table"))
    if table_id is None:
        raise InvalidTable(field="table")
    guest = Amendment(
        guests=form.whole("guests", 1, _PARTY_MAX),
        customer_name=form.text("customer_name", NAME_MAX),
        customer_email=form.text("customer_email", EMAIL_MAX) or None,
        customer_phone=form.text("customer_phone", PHONE_MAX) or None,
        notes=form.lines("notes", NOTES_MAX) or None,
    )
    check_amendment(guest)
    return Booking(
        table_id=table_id,
        date=day,
        slot=slot,
        guests=guest.guests,
        customer_name=guest.customer_name,
        customer_email=guest.customer_email,
        customer_phone=guest.customer_phone,
        notes=guest.notes,
        idempotency_key=form.text("token", 64) or None,
        language=form.text("language", 2) or language.code,
    )


async def _page(
    request: web.Request, typed: dict[str, str], problem: str | None = None, status: int = 200
) -> web.Response:
    """The form with what was typed, and the tables that are free for it."""
    environment = request[ENVIRONMENT]
    text = typed.get("guests", "")
    guests = int(text) if text.isdecimal() and len(text) <= _DIGITS_MAX else _PARTY
    day = parse_date(typed.get("date"))
    offer = await environment.database.read(_offer, day, typed.get("slot"), guests)
    values: dict[str, object] = {
        "typed": typed,
        "offer": offer,
        "guests": guests,
        "long_date": language_of(request).long_date(offer.day),
        "table_is_offered": typed.get("table") in {table.id for table in offer.tables},
        "letter_languages": request.config_dict[LANGUAGES].all(),
        "token": typed.get("token") or environment.database.tokens.new_link_secret(),
        "problem": problem,
    }
    return portal_page(request, "portal/reservations/new.html", values, status)


def _offer(reader: Reader, asked: date | None, slot: str | None, guests: int) -> _Offer:
    tonight = find_tonight(reader)
    day = asked or tonight
    slots = tuple(slots_of(reader, day))
    starts = [each.start for each in slots]
    if slot is None and starts:  # nothing was chosen yet, and a whole evening is rarely meant
        slot = _next_slot(reader, starts) if day == tonight else starts[0]
    chosen = slot if slot in starts else None
    tables = tuple(offer_tables(reader, day, chosen, guests))
    return _Offer(day, tonight, slots, chosen, tables)


def _next_slot(reader: Reader, starts: list[str]) -> str:
    """The one that begins next tonight, or began within the last hour; else the last one."""
    venue = get_venue(reader)
    ends = minutes(venue.evening_ends_at)
    zone = reader.zones.zone(venue.time_zone)
    at = datetime.fromtimestamp(reader.now / 1000, UTC).astimezone(zone)

    def late(minute: int) -> int:
        return minute + (24 * 60 if minute < ends else 0)

    now = late(at.hour * 60 + at.minute)
    ordered = sorted(starts, key=lambda start: late(minutes(start)))
    return next((start for start in ordered if late(minutes(start)) >= now - 60), ordered[-1])
