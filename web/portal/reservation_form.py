"""The page `/portal/reservations/new`: the form where staff create reservations."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from aiohttp import web

from appliance.clock import HOUR_MS
from appliance.core.errors import (
    ApiError,
    Faults,
    FormUsed,
    InvalidDate,
    InvalidSlot,
    InvalidTable,
    ValidationError,
    WrongState,
    field_invalid,
)
from appliance.core.i18n import Language
from appliance.core.i18n import mark as _
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT
from appliance.reservations.change import Amendment
from appliance.reservations.create import enter_by_staff
from appliance.reservations.holds import Place, is_held
from appliance.reservations.model import Reservation
from appliance.reservations.request import (
    GROUP_MAX,
    NAME_MAX,
    NOTES_MAX,
    Booking,
    check_customer,
    parse_uuid,
    read_contacts,
)
from appliance.reservations.search import read_availability
from appliance.venue.model import (
    Table,
    find_closing,
    find_table,
    find_tonight,
    find_zone,
    get_venue,
    has_ended,
    interval,
    is_slot,
    list_slots,
    list_tables,
    minute_of,
    offered_slots,
    parse_date,
)
from web.guest.responses import emails_are_sent
from web.portal.forms import FORM, Form
from web.portal.guard import actor_of
from web.portal.responses import (
    REFUSED,
    Declined,
    faults_by_field,
    faults_of,
    language_of,
    portal_page,
    refusal_text,
    see_other,
)
from web.rendering import LANGUAGES

STATUS_WORDS = {
    "requested": _("Requested"),
    "pending": _("Payment due"),
    "partial": _("Partly paid"),
    "confirmed": _("Confirmed"),
    "completed": _("Over"),
    "cancelled": _("Cancelled"),
    "declined": _("Declined"),
    "no_show": _("No-show"),
}
SOURCE_WORDS = {
    "partner": _("From a partner"),
    "platform": _("From the web"),
    "manual": _("Entered by staff"),
}

_SENTENCES = {
    "NothingToUndo": _("Nobody from this party has come in: there is nothing to undo."),
    "ChangedMeanwhile": _(
        "Someone else has just changed this reservation. Nothing was overwritten: check its "
        "current state, then send your changes again."
    ),
    "TableTaken": _("This table is already taken at that time. Please choose another one."),
    "InvalidTable": _("Please choose a table."),
    "TableNotFound": _("Please choose a table."),
    "TableNotBookable": _("This table is not open for reservations."),
    "InvalidSlot": _("This time is not offered on that day. Please choose another one."),
    "CustomerNameRequired": _("Please enter the guest’s name."),
}
_FIELD_SENTENCES = {
    "slot": _("Please choose a time."),
    "guests": _("Please enter the number of guests."),
    "arrivals": _("Please enter the number of people to let in."),
    "amount": _("Please enter the amount as a whole number."),
    "customer_phone": _("This phone number does not look right: 6 to 20 digits."),
    "notes": _("These notes are too long: 500 characters at most."),
    "customer_name": _("This name is too long: 200 characters at most."),
    "letter": _("Please enter the email address, or do not send the pass."),
    "void_reason": _("Please say why this payment is voided."),
    "reason": _("Please give a reason: it is recorded in the door log."),
}
_FIELDS = {
    "TableTaken": "table", "TableNotFound": "table", "TableNotBookable": "table",
    "VenueClosed": "date", "DateOutOfRange": "date",
}  # fmt: skip
_WHOLE = "whole"  # the value of the field `slot` for the whole evening
_GUESTS = 2
_PARTY_SIZES, _GUESTS_SHOWN_MAX = 8, 20  # the party sizes for walk-ins that have a button
GUESTS_MAX = 10_000
_CONTACT_MAX = 1000
_GUESTS_DIGITS_MAX = 5


async def show_new(request: web.Request, *, part: bool = False) -> web.Response:
    """`GET …/new`: show the form, filled in from `?date=`, `?slot=`, `?table=` and `?guests=`.

    After a POST, the form shows the entered values and the tables that are free for them. With
    `part` or `?part=1`, the response is a partial page for the drawer on the board.
    """
    environment, refusal = request[ENVIRONMENT], request.get(REFUSED)
    known = ("date", "slot", "table", "guests")
    typed = {name: request.query[name] for name in known if name in request.query}
    if FORM in request:
        typed = request[FORM].typed()
    if isinstance(refusal, FormUsed):
        del typed["token"]  # with a new token, the form creates another reservation
    more = request[FORM].all("more") if FORM in request else []
    offer = await environment.database.read(offer_places, typed, more)
    # If the chosen table is not free, the form keeps the table's id, and selects the table again as
    # soon as it is free.
    wanted = typed.get("table") or typed.get("wanted", "")
    values = {
        **faults_in_words(request),
        "typed": typed,
        "offer": offer,
        "wanted": wanted if parse_uuid(wanted) else "",
        "table_is_offered": any(wanted == table.id for table in offer["tables"]),
        "slot_is_lost": is_slot(typed.get("slot")) and not offer["slot"] and not refusal,
        "emails_are_sent": emails_are_sent(environment),
        "venue_is_prepaid": environment.database.peek(get_venue).reservation_mode == "prepaid",
        "letter_languages": request.config_dict[LANGUAGES].all(),
        "token": typed.get("token") or environment.database.tokens.new_link_secret(),
        "statuses": STATUS_WORDS,
        "seat": await environment.database.read(_find_seat, wanted, offer),
    }
    if request.path.endswith("/walk-in"):  # names of errors that differ from the form's fields
        values["wrong"] = {}
    values["is_part"] = is_part = part or "part" in request.query
    template = f"portal/reservations/{'new_part' if is_part else 'new'}.html"
    return portal_page(request, template, values)


def suggest_more(
    free: Sequence[Table], table_id: str, guests: int, ticked: Collection[str]
) -> list[str]:
    """Return the ids of free tables that seat the party together with its table.

    The ticked ones come first, then the nearest in the venue's list, those of the same type before
    others. The list is empty if they do not suffice, or if the table suffices alone.
    """
    places = {table.id: place for place, table in enumerate(free)}
    table = next((table for table in free if table.id == table_id), None)
    if table is None:
        return []

    def distance(other: Table) -> tuple[bool, bool, int]:
        away = abs(places[other.id] - places[table.id])
        return other.id not in ticked, other.type != table.type, away

    seats, chosen = table.capacity_max, []
    for other in sorted((other for other in free if other != table), key=distance):
        if seats >= guests:
            break
        chosen.append(other.id)
        seats += other.capacity_max
    return chosen if seats >= guests else []


def _find_seat(reader: Reader, table_id: str, offer: dict[str, Any]) -> dict[str, Any] | None:
    """Return the table and the sizes of a party that can be seated at it now, or None."""
    table = next((table for table in offer["tables"] if table.id == table_id), None)
    slot = next((slot for slot in offer["slots"] if slot.start == offer["slot"]), None)
    venue = get_venue(reader)
    starts, _ = interval(slot, venue.evening_ends_at)
    opens_at = minute_of(offer["day"], starts - venue.early_minutes, find_zone(reader))
    if table is None or offer["day"] != offer["tonight"] or reader.now < opens_at:
        return None
    most = max(_PARTY_SIZES, min(table.capacity_max, _GUESTS_SHOWN_MAX))
    return {"table": table, "sizes": range(1, most + 1)}


async def make_new(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST …/new`: create a reservation, or only show free tables if the field `offer` is set."""
    environment, letter = request[ENVIRONMENT], form.checked("letter")
    if form.checked("offer"):
        return await show_new(request)
    try:
        made = await environment.database.write(
            enter_by_staff,
            _read_booking(form, language_of(request).code),
            actor=actor_of(request),
            notify=letter,
            vip=form.checked("vip"),
            prepaid=form.checked("prepaid"),
            over_capacity=confirms_guests(form),
        )
    except ApiError as refusal:
        request[REFUSED] = refusal  # the page also shows the tables that are free now
        return await show_new(request)
    note = "entered"
    if letter:
        note = "entered-letter" if emails_are_sent(environment) else "entered-letter-waits"
    return see_other(request, f"/reservations/{made.id}", note)


def confirms_guests(form: Form) -> bool:
    """Return whether staff have confirmed a number of guests that exceeds the table's capacity."""
    return form.text("sure") == form.text("guests")


def faults_in_words(request: web.Request) -> dict[str, object]:
    """Return the template values `problem` and `wrong` after a form was refused."""
    refusal, language = request.get(REFUSED), language_of(request)
    if refusal is None:
        return {}
    return {
        "problem": _in_words(refusal, language),
        "wrong": faults_by_field(
            (_FIELDS.get(type(fault).__name__, fault.field), _in_words(fault, language))
            for fault in faults_of(refusal)
        ),
    }


def _in_words(fault: ApiError | Declined, language: Language) -> str:
    """Return the problem, and the remedy for staff."""
    if isinstance(fault, ValidationError) and fault.field in _FIELD_SENTENCES:
        return language.gettext(_FIELD_SENTENCES[fault.field])
    if type(fault) is WrongState and "state" in fault.details:
        status = language.gettext(STATUS_WORDS[str(fault.details["state"])])
        return language.gettext(
            "This is not possible any more. The reservation is: %(status)s", status=status
        )
    names = (kind.__name__ for kind in type(fault).__mro__)
    sentence = next((_SENTENCES[name] for name in names if name in _SENTENCES), None)
    return language.gettext(sentence) if sentence else refusal_text(fault, language)


def read_guest(form: Form) -> Amendment:
    """Return the entered customer details, number of guests and notes.

    Raises an ApiError if fields are invalid.
    """
    faults = Faults()
    name = faults.read(form.text, "customer_name", NAME_MAX)
    email, phone = read_contacts(
        faults.read(form.text, "customer_email", _CONTACT_MAX),
        faults.read(form.text, "customer_phone", _CONTACT_MAX),
    )
    entered = Amendment(
        guests=faults.read(form.integer, "guests", 1, GUESTS_MAX),
        customer_name=name or "",
        customer_email=email,
        customer_phone=phone,
        notes=faults.read(form.lines, "notes", NOTES_MAX) or None,
        vip=form.checked("vip"),
    )
    for customer in ((name, None, None), (None, email, None), (None, None, phone)):
        faults.read(check_customer, *customer, "customer_")
    faults.raise_all()
    return entered


def read_place(form: Form) -> Place:
    """Return the entered date, slot, tables and number of guests.

    Raises an ApiError if fields are invalid.
    """
    faults = Faults()
    day, slot = parse_date(form.text("date")), form.text("slot")
    table_id = parse_uuid(form.text("table"))
    if day is None:
        faults.add(InvalidDate(field="date"))
    if not slot:
        faults.add(field_invalid("slot", "please give a time."))
    elif slot != _WHOLE and not is_slot(slot):
        faults.add(InvalidSlot(field="slot"))
    if table_id is None:
        faults.add(InvalidTable(field="table"))
    guests = faults.read(form.integer, "guests", 1, GUESTS_MAX)
    faults.raise_all()
    assert day is not None  # noqa: S101 - for mypy
    assert table_id is not None  # noqa: S101
    more = (parse_uuid(text) for text in form.all("more")[:GROUP_MAX])
    tables = dict.fromkeys((table_id, *(each for each in more if each is not None)))
    return Place(tuple(tables), day, None if slot == _WHOLE else slot, guests)


def _read_booking(form: Form, language: str) -> Booking:
    """Return the entered booking. Raises an ApiError if fields are invalid."""
    faults = Faults()
    place = faults.read(read_place, form)
    guest = faults.read(read_guest, form)
    if form.checked("letter") and not form.typed()["customer_email"].strip():
        faults.add(field_invalid("letter", "please give an email address."))
    faults.raise_all()
    members = asdict(guest)
    del members["vip"]
    return Booking(
        table_id=place.table_ids[0],
        more_table_ids=place.table_ids[1:],
        date=place.date,
        slot=place.slot,
        idempotency_key=form.text("token", 64) or None,
        language=form.text("language", 2) or language,
        **members,
    )


def offer_places(
    reader: Reader, typed: Mapping[str, str], more: Sequence[str] = (),
    own: Reservation | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the slots and the free tables for the entered date, slot and number of guests.

    `more` are the further tables of a group. With `own`, these are the places to which this
    reservation can be moved, unbookable tables too; what is not entered stays as it is. In the
    result, `more` are the further tables that the party needs, and `slot` is the start of the
    chosen slot, _WHOLE for the whole evening, or "" if the entered slot is not offered on that day.
    """
    tonight, venue = find_tonight(reader), get_venue(reader)
    text = typed.get("guests", "")
    guests = int(text) if text.isdecimal() and len(text) <= _GUESTS_DIGITS_MAX else None
    if own is not None:
        kept = {"date": own.date, "slot": own.slot or _WHOLE, "table": own.table_id}
        typed, guests = {**kept, **typed}, guests or own.guests
    day = parse_date(typed.get("date")) or tonight
    zone, ends = reader.zones.zone(venue.time_zone), venue.evening_ends_at
    slots = sorted(offered_slots(list_slots(reader), day), key=lambda slot: interval(slot, ends))
    slot = typed.get("slot")
    if slot is None:  # by default, the first slot that began within the last hour or begins later
        since = reader.now - HOUR_MS
        recent = (s.start for s in slots if minute_of(day, interval(s, ends)[0], zone) >= since)
        slot = next(recent, slots[-1].start if slots else _WHOLE)
    stays = own is not None and (own.date, own.slot or _WHOLE) == (day.isoformat(), slot)
    if not stays and slot not in {_WHOLE, *(offered.start for offered in slots)}:
        slot = ""
    guests = guests or _usual_guests(reader, typed.get("table"))
    chosen = next((offered for offered in slots if offered.start == slot), None)
    is_shut, table = not slot or day < tonight, typed.get("table") or typed.get("wanted", "")
    found = read_availability(reader, day, chosen, closed=is_shut)
    free = [one.table for one in found if one.available]
    if own is not None:
        hours = (own.starts, own.ends) if stays else interval(chosen, ends)
        free = [
            table for table in list_tables(reader)
            if not is_shut and not is_held(reader, table.id, day.isoformat(), *hours, own)
        ]  # fmt: skip
    suggests = typed.get("offer") or not (more or own)
    return {
        "day": day,
        "tonight": tonight,
        "slots": slots,
        "slot": slot,
        "guests": guests,
        "tables": free,
        "table": table,
        "more": suggest_more(free, table, guests, more) if suggests else more,
        "one_fits": any(table.seats(guests) for table in free),
        "has_tables": any(one.table.bookable for one in found),
        "closing": find_closing(reader, day.isoformat()),
        "is_past": day < tonight,
        "slot_has_ended": has_ended(chosen, day, venue, zone, reader.now),
    }


def _usual_guests(reader: Reader, table_id: str | None) -> int:
    """Return the default number of guests: 2, or the nearest number that the table can seat."""
    table = find_table(reader, table_id) if table_id else None
    return min(max(_GUESTS, table.capacity_min), table.capacity_max) if table else _GUESTS
