"""`/portal/reservations/new`: staff create a reservation."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from aiohttp import web

from appliance.core.errors import ApiError, FormUsed, InvalidDate, InvalidSlot, InvalidTable
from appliance.core.i18n import mark as _
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT
from appliance.reservations.change import Amendment, check_amendment
from appliance.reservations.create import enter_by_staff
from appliance.reservations.request import (
    EMAIL_MAX,
    NAME_MAX,
    NOTES_MAX,
    PHONE_MAX,
    Booking,
    parse_uuid,
)
from appliance.reservations.rows import list_holds
from appliance.venue.model import (
    Slot,
    Table,
    day_of_week,
    find_slot,
    has_ended,
    interval,
    is_slot,
    minutes,
    overlap,
    parse_date,
)
from appliance.venue.rows import (
    find_closing,
    find_table,
    find_tonight,
    get_venue,
    list_slots,
    list_tables,
)
from web.guest.responses import emails_are_sent
from web.portal.forms import FORM, Form, field_error
from web.portal.guard import actor_of
from web.portal.responses import language_of, portal_page, refusal_text, see_other
from web.rendering import LANGUAGES

STATUS_WORDS = {
    "requested": _("Requested"),
    "pending": _("Payment due"),
    "partial": _("Partly paid"),
    "confirmed": _("Confirmed"),
    "completed": _("Over"),
    "cancelled": _("Cancelled"),
    "declined": _("Declined"),
}
SOURCE_WORDS = {
    "partner": _("From a partner"),
    "platform": _("From the web"),
    "manual": _("Entered here"),
}

WHOLE = "whole"
_PARTY = 2
_PARTY_MAX = 10_000
_DIGITS_MAX = 5


async def show_new(request: web.Request) -> web.Response:
    """`GET`: the form, filled from `?date=`, `?slot=`, `?table=` and `?guests=`."""
    known = ("date", "slot", "table", "guests")
    asked = {name: request.query[name] for name in known if name in request.query}
    return await _page(request, asked)


async def make_new(request: web.Request) -> web.StreamResponse:
    """`POST`: create the reservation; with `offer`, show what is free for the choices so far."""
    form, environment = request[FORM], request[ENVIRONMENT]
    typed, letter = form.typed(), form.ticked("letter")
    if form.ticked("offer"):
        return await _page(request, typed)
    try:
        made = await environment.database.write(
            enter_by_staff,
            _read_booking(form, language_of(request).code),
            actor=actor_of(request),
            notify=letter,
            vip=form.ticked("vip"),
        )
    except ApiError as refusal:
        if isinstance(refusal, FormUsed):
            del typed["token"]  # so that sending it again creates another reservation
        return await _page(request, typed, refusal)
    note = "entered"
    if letter:
        note = "entered-letter" if emails_are_sent(environment) else "entered-letter-waits"
    return see_other(request, f"/reservations/{made.id}", note)


def read_guest(form: Form) -> Amendment:
    """Return the guest's data and the party size."""
    return Amendment(
        guests=form.whole("guests", 1, _PARTY_MAX),
        customer_name=form.text("customer_name", NAME_MAX),
        customer_email=form.text("customer_email", EMAIL_MAX) or None,
        customer_phone=form.text("customer_phone", PHONE_MAX) or None,
        notes=form.lines("notes", NOTES_MAX) or None,
        vip=form.ticked("vip"),
    )


def _read_booking(form: Form, language: str) -> Booking:
    """Return the entered booking. Raises the error of the first invalid field."""
    day = parse_date(form.text("date"))
    if day is None:
        raise InvalidDate(field="date")
    slot = form.needed("slot", "l'heure.", "a time.")
    if slot != WHOLE and not is_slot(slot):
        raise InvalidSlot(field="slot")
    table_id = parse_uuid(form.text("table"))
    if table_id is None:
        raise InvalidTable(field="table")
    guest = read_guest(form)
    check_amendment(guest)
    if form.ticked("letter") and guest.customer_email is None:
        raise field_error("letter", "une adresse pour la lettre.", "an address for the letter.")
    return Booking(
        table_id=table_id,
        date=day,
        slot=None if slot == WHOLE else slot,
        guests=guest.guests,
        customer_name=guest.customer_name,
        customer_email=guest.customer_email,
        customer_phone=guest.customer_phone,
        notes=guest.notes,
        idempotency_key=form.text("token", 64) or None,
        language=form.text("language", 2) or language,
    )


async def _page(
    request: web.Request, typed: dict[str, str], refusal: ApiError | None = None
) -> web.Response:
    """Return the form with the entered values and the tables that are free for them."""
    environment = request[ENVIRONMENT]
    text = typed.get("guests", "")
    guests = int(text) if text.isdecimal() and len(text) <= _DIGITS_MAX else None
    offer = await environment.database.read(_offer, typed, guests)
    # Keep the wanted table, so that it is selected again when it becomes available.
    wanted = typed.get("table") or typed.get("wanted", "")
    values: dict[str, object] = {
        "typed": typed,
        "offer": offer,
        "wanted": wanted if parse_uuid(wanted) else "",
        "table_is_offered": any(wanted == table.id for table in offer["tables"]),
        "slot_is_lost": is_slot(typed.get("slot")) and not offer["slot"] and not refusal,
        "emails_are_sent": emails_are_sent(environment),
        "letter_languages": request.config_dict[LANGUAGES].all(),
        "token": typed.get("token") or environment.database.tokens.new_link_secret(),
        "refusal": refusal,
        "problem": refusal and refusal_text(refusal, language_of(request)),
        "statuses": STATUS_WORDS,
    }
    status = refusal.status if refusal else 200
    return portal_page(request, "portal/reservations/new.html", values, status)


def _offer(reader: Reader, typed: Mapping[str, str], guests: int | None) -> dict[str, Any]:
    """Return the choices for an evening, a slot and a party.

    `slot` is its start, WHOLE, or "" if none is chosen yet.
    """
    tonight, venue = find_tonight(reader), get_venue(reader)
    day = parse_date(typed.get("date")) or tonight
    slots = slots_of(reader, day)
    slot = typed.get("slot")
    if slot is None and slots:  # no choice yet: a whole evening is rarely meant
        slot = _next_slot(reader, slots) if day == tonight else slots[0].start
    elif slot is None:
        slot = WHOLE
    elif slot not in {WHOLE, *(each.start for each in slots)}:
        slot = ""
    party = guests or _usual_party(reader, typed.get("table"))
    start = None if slot == WHOLE else slot
    closing = find_closing(reader, day.isoformat())
    chosen = next((one for one in slots if one.start == start), None)
    zone = reader.zones.zone(venue.time_zone)
    return {
        "day": day,
        "tonight": tonight,
        "slots": slots,
        "slot": slot,
        "guests": party,
        "tables": [] if closing or not slot else offer_tables(reader, day, start, party),
        "closing": closing,
        "slot_has_ended": has_ended(chosen, day, venue, zone, reader.now),
    }


def _usual_party(reader: Reader, table_id: str | None) -> int:
    """Return a party of two, or the nearest size that the given table seats."""
    table = find_table(reader, table_id) if table_id else None
    return min(max(_PARTY, table.capacity_min), table.capacity_max) if table else _PARTY


def _next_slot(reader: Reader, slots: list[Slot]) -> str:
    """Return the next slot tonight, or one begun within the last hour; else the last slot."""
    venue = get_venue(reader)
    at = datetime.fromtimestamp(reader.now / 1000, reader.zones.zone(venue.time_zone))
    now = at.hour * 60 + at.minute
    if now < minutes(venue.evening_ends_at):  # times after midnight belong to this evening
        now += 24 * 60
    coming = (s.start for s in slots if interval(s, venue.evening_ends_at)[0] >= now - 60)
    return next(coming, slots[-1].start)


def offer_tables(reader: Reader, day: date, slot: str | None, guests: int) -> list[Table]:
    """Return free bookable tables of that evening and slot for `guests`, in the venue's order."""
    found = find_slot(list_slots(reader), slot, day) if slot else None
    if slot and found is None:
        return []
    wanted = interval(found, get_venue(reader).evening_ends_at)
    return [
        table
        for table in free_tables(reader, day.isoformat(), wanted)
        if table.bookable and table.capacity_min <= guests <= table.capacity_max
    ]


def free_tables(reader: Reader, day: str, wanted: tuple[int, int]) -> list[Table]:
    """Return the tables without a hold in that interval of the evening, in minutes."""
    held = {
        table_id
        for table_id, starts, ends, _ in list_holds(reader, day)
        if overlap((starts, ends), wanted)
    }
    return [table for table in list_tables(reader) if table.id not in held]


def slots_of(reader: Reader, day: date) -> list[Slot]:
    """Return the slots of that weekday in evening order: after midnight comes last."""
    weekday, ends = day_of_week(day), get_venue(reader).evening_ends_at
    offered = [slot for slot in list_slots(reader) if weekday in slot.days_of_week]
    return sorted(offered, key=lambda slot: interval(slot, ends))
