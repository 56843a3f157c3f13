"""The booking form: free tables, fields, validation and error messages."""

from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

from aiohttp import web

from appliance.core.email_addresses import is_email
from appliance.core.errors import (
    ApiError,
    GuestsOutOfRange,
    TableNotBookable,
    TableNotFound,
    TableTaken,
)
from appliance.core.i18n import Language, isolate
from appliance.core.i18n import mark as _
from appliance.core.phone_numbers import is_phone
from appliance.core.text import fold
from appliance.core.tokens import made_at
from appliance.database.connection import Reader
from appliance.environment import Environment
from appliance.reservations.create import ANY_TABLE
from appliance.reservations.request import (
    NAME_MAX,
    NOTES_MAX,
    Booking,
    is_visible,
    parse_uuid,
    read_contacts,
)
from appliance.reservations.search import read_availability
from appliance.venue.model import (
    BOOKING_HORIZON_DAYS,
    Slot,
    Table,
    Venue,
    find_closing,
    find_tonight,
    find_zone,
    get_venue,
    has_begun,
    interval,
    is_slot,
    list_slots,
    list_tables,
    may_be_booked,
    offered_slots,
    parse_date,
)
from web.guest.card import evening_in_words, refusal_in_words
from web.portal.forms import read_form

TRAP = "website"  # a hidden form field: people cannot see it, but bots fill it in
WHOLE_EVENING = "evening"  # the value of the field `when` for the whole evening
_NEXT_DAYS = 7
_FASTEST = 2_000  # in ms; a form submitted faster than this probably comes from a bot
_OLDEST = 6 * 3_600_000  # in ms; a form older than this must be submitted again
_TYPED_MAX = 2000
_SHOWN_TABLES = 5
_TABLE_ERRORS = (TableTaken, TableNotBookable, TableNotFound, GuestsOutOfRange)
_TOO_LONG = _("One of the fields is too long: please shorten it.")
_NOT_BOOKABLE = _("This evening cannot be booked. Please choose another one.")


@dataclass(frozen=True, slots=True)
class Choice:
    """A time that a guest can choose, with the tables that are free then.

    `when` is the start of `slot` as `HH:MM`. For the whole evening, `when` is `evening` and `slot`
    is None.
    """

    when: str
    slot: Slot | None
    tables: tuple[Table, ...]
    has_begun: bool

    @property
    def is_free(self) -> bool:
        """Return whether the guests can book this time."""
        return bool(self.tables) and not self.has_begun


@dataclass(frozen=True, slots=True)
class Offer:
    """The times that `guests` people can choose on the evening of `day`.

    `most` is the capacity of the largest bookable table. `next_days` contains tonight and the next
    six days, except days on which the venue is closed.
    """

    venue: Venue
    tonight: date
    day: date
    guests: int
    most: int
    is_closed: bool
    choices: tuple[Choice, ...]
    next_days: tuple[date, ...]

    @property
    def is_free(self) -> bool:
        """Return whether the guests can book at least one of the times."""
        return any(choice.is_free for choice in self.choices)

    @property
    def starts(self) -> int | None:
        """Return the first slot's start in minutes after midnight, or None if there is no slot."""
        slots = [choice.slot for choice in self.choices if choice.slot]
        return min((interval(slot, self.venue.evening_ends_at)[0] for slot in slots), default=None)

    def choice(self, when: str) -> Choice | None:
        """Return the choice for `when`, or None if there is none."""
        return next((choice for choice in self.choices if choice.when == when), None)


def read_offer(reader: Reader, wanted: date | None, guests: int) -> Offer:
    """Return the offer for `wanted`, or for tonight if that date is None or not bookable."""
    venue, slots = get_venue(reader), list_slots(reader)
    this_evening, zone = find_tonight(reader), find_zone(reader)
    day = wanted if wanted and may_be_booked(wanted, this_evening) else this_evening
    most = max((table.capacity_max for table in list_tables(reader) if table.bookable), default=1)
    party = min(max(guests, 1), most)

    def is_closed(evening: date) -> bool:
        return find_closing(reader, evening.isoformat()) is not None

    def choice(slot: Slot | None) -> Choice:
        found = read_availability(reader, day, slot)
        free = tuple(each.table for each in found if each.available and each.table.seats(party))
        is_late = has_begun(slot, slots, day, venue, zone, reader.now)
        return Choice(slot.start if slot else WHOLE_EVENING, slot, free, is_late)

    days = (this_evening + timedelta(days=n) for n in range(_NEXT_DAYS))
    offered = sorted(
        offered_slots(slots, day), key=lambda slot: interval(slot, venue.evening_ends_at)
    )
    slots_only = venue.slots_only and bool(offered)
    return Offer(
        venue=venue,
        tonight=this_evening,
        day=day,
        guests=party,
        most=most,
        is_closed=is_closed(day),
        choices=tuple(choice(slot) for slot in (*offered, *(() if slots_only else (None,)))),
        next_days=tuple(next_day for next_day in days if not is_closed(next_day)),
    )


@dataclass(frozen=True, slots=True)
class BookingForm:
    """A submitted booking form.

    The values in `booking` may be invalid. `typed` contains the fields as entered. `age` (ms since
    the form was shown) is None if this box did not issue the form's token.
    """

    booking: Booking
    typed: dict[str, str]
    age: int | None

    @property
    def is_stale(self) -> bool:
        """Return whether the token has expired or is invalid."""
        return self.age is None or not 0 <= self.age <= _OLDEST


async def read_booking_form(
    request: web.Request, environment: Environment, language: Language
) -> BookingForm:
    """Read the submitted form without validating its values. Without a date, it is for tonight.

    Raises ValidationError if the form cannot be read or a field is far too long.
    """
    fields, database = await read_form(request), environment.database
    when, day = fields.text("when"), parse_date(fields.text("date"))
    form_id = environment.keyring.read_form_token(fields.text("token"))
    email, phone = read_contacts(fields.text("email", _TYPED_MAX), fields.text("phone", _TYPED_MAX))
    booking = Booking(
        table_id=parse_uuid(fields.text(f"table-{when}")) or ANY_TABLE,
        date=day or database.peek(find_tonight),
        slot=None if when == WHOLE_EVENING else when,
        guests=parse_party(fields.text("guests"), 0),
        customer_name=fields.text("name", _TYPED_MAX),
        customer_email=email,
        customer_phone=phone,
        notes=fields.lines("notes") or None,
        idempotency_key=form_id,
        language=language.code,
    )
    age = database.clock.now() - made_at(form_id) if form_id else None
    return BookingForm(booking, fields.typed(), age)


def parse_party(text: str, otherwise: int) -> int:
    """Parse a number of guests. Return `otherwise` if `text` is not a number of up to 4 digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else otherwise


def new_token(environment: Environment) -> str:
    """Return a token for a new form.

    The token contains the form's id, which includes the current time. The box later uses this
    time to determine how long the form was open.
    """
    database = environment.database
    return environment.keyring.form_token(database.tokens.new_id(database.clock.now()))


def find_errors(booking: Booking, language: Language) -> dict[str, str]:
    """Validate the entered values. Return error messages by field name."""
    errors: dict[str, str] = {}
    if booking.slot is not None and not is_slot(booking.slot):
        errors["when"] = _("Please choose a time.")
    if not is_visible(booking.customer_name):
        errors["name"] = _("Please enter your name.")
    elif len(booking.customer_name) > NAME_MAX:
        errors["name"] = _TOO_LONG
    email, phone = booking.customer_email, booking.customer_phone
    if not email and not phone:
        errors["email"] = _("Please give an email address or a phone number.")
    if email and not is_email(email):
        errors["email"] = _("This email address is not valid: please check it.")
    if phone and not is_phone(phone):
        errors["phone"] = _("This phone number is not valid: enter 6 to 20 digits.")
    if len(booking.notes or "") > NOTES_MAX:
        errors["notes"] = _TOO_LONG
    return {name: language.gettext(text) for name, text in errors.items()}


def find_doubt(form: BookingForm, language: Language) -> str | None:
    """Return a message if the form is stale or may have been submitted by a bot.

    Otherwise, return None.
    """
    gettext = language.gettext
    if form.typed[TRAP] or (form.age is not None and 0 <= form.age < _FASTEST):
        return gettext("That was quick. Please check your entries and send them again.")
    if form.is_stale:
        return gettext("This page was open for a long time. Nothing is lost: please send it again.")
    return None


def offer_in_words(offer: Offer, form: BookingForm | None, language: Language) -> dict[str, object]:
    """Return the template values for the offer.

    The time in `form` stays selected if it is still free. For each day, `days` contains a tuple
    (form value, label such as `Ce soir`, whether the day is selected).
    """
    near, written = evening_in_words(offer.day, offer.tonight, language, offer.starts)
    free = [choice.when for choice in offer.choices if choice.is_free]
    wanted = form.typed["when"] if form else next(iter(free), "")
    last = offer.tonight + timedelta(BOOKING_HORIZON_DAYS)
    return {
        "offer": offer,
        "venue": offer.venue,
        "wanted": wanted if wanted in free else "",
        "evening": (
            language.gettext("%(near)s, %(date)s", near=near, date=written) if written else near
        ),
        "next_morning": language.short_date(offer.day + timedelta(1)),
        "last": last.isoformat(),
        "days": [_day(day, offer, language) for day in offer.next_days],
        "table_in_words": partial(_table, offer.venue.currency, language),
    }


def trouble_in_words(refusal: ApiError, offer: Offer, when: str, language: Language) -> str:
    """Return a message that says why `when` was not booked and which tables or times are free."""
    if not isinstance(refusal, _TABLE_ERRORS):
        return refusal_in_words(refusal, language, _NOT_BOOKABLE)
    gettext, choice = language.gettext, offer.choice(when)
    if choice is not None and choice.is_free:
        names = [isolate(table.number) or "" for table in choice.tables[:_SHOWN_TABLES]]
        return gettext(
            "That table has just been booked. Still free at that time: %(tables)s.",
            tables=language.list(names),
        )
    whole_evening = gettext("The whole evening").lower()
    times = [
        isolate(other.slot.start if other.slot else whole_evening) or ""
        for other in offer.choices
        if other.is_free
    ]
    if times:
        return gettext(
            "The last table at that time has just been booked. Still free: %(times)s.",
            times=language.list(times),
        )
    return gettext(
        "The last table has just been booked: nothing is left that evening. "
        "Please try another evening."
    )


def _day(day: date, offer: Offer, language: Language) -> tuple[str, str, bool]:
    near, written = evening_in_words(day, offer.tonight, language, offer.starts)
    return day.isoformat(), near if written else language.short_date(day), day == offer.day


def _table(currency: str, language: Language, table: Table) -> str:
    name = table.number
    if fold(table.name) != fold(table.number):
        name = f"{table.name} ({table.number})"
    text = isolate(name) or name
    if not table.minimum_spend:
        return text
    amount = f"{table.minimum_spend} {currency}"
    return language.gettext("%(table)s, from %(amount)s", table=text, amount=amount)
