"""The booking form: free tables, fields, validation and error texts."""

from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

from aiohttp import web

from appliance.core.errors import (
    ApiError,
    FormUsed,
    GuestsOutOfRange,
    InvalidSlot,
    RateLimited,
    TableNotBookable,
    TableNotFound,
    TableTaken,
    TooManyBookings,
    Unavailable,
    VenueClosed,
)
from appliance.core.i18n import Language, isolate
from appliance.core.tokens import made_at
from appliance.database.connection import Reader
from appliance.environment import Environment
from appliance.reservations.create import ANY_TABLE
from appliance.reservations.request import (
    NAME_MAX,
    NOTES_MAX,
    Booking,
    is_email,
    is_phone,
    is_visible,
    parse_uuid,
)
from appliance.reservations.rows import list_holds
from appliance.reservations.search import find_availability
from appliance.venue.model import (
    BOOKING_HORIZON_DAYS,
    Slot,
    Table,
    Venue,
    has_begun,
    interval,
    is_slot,
    may_be_booked,
    offered_slots,
    parse_date,
    tonight,
)
from appliance.venue.rows import get_venue, list_closings, list_slots, list_tables
from web.guest.card import evening_in_words
from web.portal.forms import read_form

WHOLE_EVENING = "evening"  # the form's value for no slot
_NEXT_DAYS = 7


@dataclass(frozen=True, slots=True)
class Choice:
    """A time that a guest can choose. `when` is `HH:MM`, or `evening` with `slot` None."""

    when: str
    slot: Slot | None
    tables: tuple[Table, ...]
    has_begun: bool

    @property
    def is_free(self) -> bool:
        """Return whether the party can book it."""
        return bool(self.tables) and not self.has_begun


@dataclass(frozen=True, slots=True)
class Offer:
    """The choices of an evening for `guests`; `most` is the capacity of the largest table."""

    venue: Venue
    tonight: date
    day: date
    guests: int
    most: int
    is_closed: bool
    choices: tuple[Choice, ...]
    next_days: tuple[date, ...]  # tonight and the days that follow, without closing days

    @property
    def is_free(self) -> bool:
        """Return whether any choice is free."""
        return any(choice.is_free for choice in self.choices)

    def choice(self, when: str) -> Choice | None:
        """Return the choice named `when`, or None."""
        return next((one for one in self.choices if one.when == when), None)


def takes_bookings(environment: Environment) -> bool:
    """Return whether guests can book on these pages."""
    return environment.name == "test" or environment.settings.booking.enabled


def read_offer(reader: Reader, wanted: date | None, guests: int) -> Offer:
    """Return the offer of `wanted`, or of tonight if it is None or not bookable."""
    venue, slots, tables = get_venue(reader), list_slots(reader), list_tables(reader)
    zone, now = reader.zones.zone(venue.time_zone), reader.now
    this_evening = tonight(now, zone, venue.evening_ends_at)
    day = wanted if wanted and may_be_booked(wanted, this_evening) else this_evening
    closings, holds = list_closings(reader), list_holds(reader, day.isoformat())
    most = max((table.capacity_max for table in tables if table.bookable), default=1)
    party = min(max(guests, 1), most)

    def is_closed(evening: date) -> bool:
        return any(closing.holds(evening.isoformat()) for closing in closings)

    def choice(slot: Slot | None) -> Choice:
        hours = interval(slot, venue.evening_ends_at)
        found = find_availability(tables, holds, hours, closed=is_closed(day))
        free = tuple(
            one.table
            for one in found
            if one.available and one.table.capacity_min <= party <= one.table.capacity_max
        )
        is_late = has_begun(slot, slots, day, venue, zone, now)
        return Choice(slot.start if slot else WHOLE_EVENING, slot, free, is_late)

    days = (this_evening + timedelta(days=n) for n in range(_NEXT_DAYS))
    offered = sorted(offered_slots(slots, day), key=lambda s: interval(s, venue.evening_ends_at))
    return Offer(
        venue=venue,
        tonight=this_evening,
        day=day,
        guests=party,
        most=most,
        is_closed=is_closed(day),
        choices=tuple(choice(slot) for slot in (*offered, None)),
        next_days=tuple(next_day for next_day in days if not is_closed(next_day)),
    )


FIELDS = ("when", "name", "email", "phone", "notes")  # fields that can have an error
TRAP = "website"  # a field hidden from guests: only a program fills it in
_FASTEST = 2_000  # ms: no guest completes the form faster
_OLDEST = 6 * 3_600_000
_TYPED_MAX = 2000


@dataclass(frozen=True, slots=True)
class BookingForm:
    """A submitted form; `table` is an id or "", `form_id` None if the token is not ours."""

    day: date | None
    guests: int
    when: str
    table: str
    name: str
    email: str
    phone: str
    notes: str
    form_id: str | None
    token: str
    is_trapped: bool
    age: int | None

    @property
    def is_stale(self) -> bool:
        """Return whether the token is not ours or has expired."""
        return self.age is None or not 0 <= self.age <= _OLDEST

    def to_booking(self, day: date, language: Language) -> Booking:
        """Return the requested booking. The form must have no errors."""
        return Booking(
            table_id=self.table or ANY_TABLE,
            date=day,
            slot=None if self.when == WHOLE_EVENING else self.when,
            guests=self.guests,
            customer_name=self.name,
            customer_email=self.email or None,
            customer_phone=self.phone or None,
            notes=self.notes or None,
            idempotency_key=self.form_id,
            language=language.code,
        )


async def read_booking_form(request: web.Request, environment: Environment) -> BookingForm:
    """Return the submitted form, without checking it. Raises ValidationError if unreadable."""
    sent = await read_form(request)
    token, when = sent.text("token"), sent.text("when")
    form_id = environment.keyring.read_form_token(token)
    return BookingForm(
        day=parse_date(sent.text("date")),
        guests=parse_party(sent.text("guests"), 0),
        when=when,
        table=parse_uuid(sent.text(f"table-{when}")) or "",
        name=sent.text("name", _TYPED_MAX),
        email=sent.text("email", _TYPED_MAX),
        phone=sent.text("phone", _TYPED_MAX),
        notes=sent.lines("notes"),
        form_id=form_id,
        token=token,
        is_trapped=bool(sent.text(TRAP, _TYPED_MAX)),
        age=environment.database.clock.now() - made_at(form_id) if form_id else None,
    )


def parse_party(text: str, otherwise: int) -> int:
    """Return the number of guests in a form or URL; `otherwise` if there is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else otherwise


def new_token(environment: Environment) -> str:
    """Return the token for a new form."""
    database = environment.database
    return environment.keyring.form_token(database.tokens.new_id(database.clock.now()))


def find_errors(form: BookingForm, language: Language) -> dict[str, str]:
    """Return the errors of the entered values: field name to text."""
    _ = language.gettext
    errors: dict[str, str] = {}
    if form.when != WHOLE_EVENING and not is_slot(form.when):
        errors["when"] = _("Please choose a time.")
    if not is_visible(form.name):
        errors["name"] = _("Please write your name.")
    elif len(form.name) > NAME_MAX:
        errors["name"] = _("One of the fields is too long: please shorten it.")
    if not form.email and not form.phone:
        errors["email"] = _("Please give an email address or a phone number.")
    if form.email and not is_email(form.email):
        errors["email"] = _("This email address cannot be right: please look at it once more.")
    if form.phone and not is_phone(form.phone):
        errors["phone"] = _("This phone number cannot be right: 6 to 20 digits are needed.")
    if len(form.notes) > NOTES_MAX:
        errors["notes"] = _("One of the fields is too long: please shorten it.")
    return errors


def find_doubt(form: BookingForm, language: Language) -> str | None:
    """Return a text for the guest if the form looks automated or is stale, else None."""
    _ = language.gettext
    if form.is_trapped or (form.age is not None and 0 <= form.age < _FASTEST):
        return _("That was quick. Please look at it once more, and send it again.")
    if form.is_stale:
        return _("This page was open for a long time. Nothing is lost: please send it again.")
    return None


_SHOWN_TABLES = 5


def offer_in_words(offer: Offer, form: BookingForm | None, language: Language) -> dict[str, object]:
    """Return what the page shows of the offer. The guest's choice is kept if it is free.

    `days` are (form value, label such as `Ce soir`, whether it is selected).
    """
    near, written = evening_in_words(offer.day, offer.tonight, language)
    free = [choice.when for choice in offer.choices if choice.is_free]
    wanted = form.when if form else next(iter(free), "")
    last = offer.tonight + timedelta(BOOKING_HORIZON_DAYS)
    return {
        "offer": offer,
        "venue": offer.venue,
        "wanted": wanted if wanted in free else "",
        "evening": (
            language.gettext("%(near)s, %(date)s", near=near, date=written) if written else near
        ),
        "last": last.isoformat(),
        "days": [_day(day, offer, language) for day in offer.next_days],
        "table_in_words": partial(_table, offer.venue.currency, language),
    }


def trouble_in_words(
    refusal: ApiError, offer: Offer, form: BookingForm | None, language: Language
) -> str:
    """Return why nothing was booked and what is free: "Autres tables libres : T2, T5."."""
    _ = language.gettext
    if isinstance(refusal, (TableTaken, TableNotBookable, TableNotFound, GuestsOutOfRange)):
        return _taken(offer.choice(form.when) if form else None, offer, language)
    sentences: dict[type[ApiError], str] = {
        InvalidSlot: _("This time is not offered any more. Please choose another one."),
        VenueClosed: _("The house is closed that evening. Please choose another one."),
        FormUsed: _(
            "This page has already made a booking. Nothing more was booked: "
            "if you want another table, please send it once more."
        ),
        Unavailable: _("The box is busy. Nothing was lost: please try again in a moment."),
        RateLimited: _(
            "Many people are booking just now. Please try again later, or call the venue."
        ),
        TooManyBookings: _(
            "There are bookings from your connection already. For more, please call the venue."
        ),
    }
    otherwise = _("This evening cannot be booked. Please choose another one.")
    return sentences.get(type(refusal), otherwise)


def _taken(choice: Choice | None, offer: Offer, language: Language) -> str:
    _ = language.gettext
    if choice is not None and choice.is_free:
        names = ", ".join(table.number for table in choice.tables[:_SHOWN_TABLES])
        return _(
            "Somebody was faster: that table is taken. Still free at that time: %(tables)s.",
            tables=isolate(names),
        )
    others = [_hours(other, language) for other in offer.choices if other.is_free]
    if others:
        return _(
            "Somebody was faster: no table is left at that time. Still free: %(times)s.",
            times=isolate(", ".join(others)),
        )
    return _("Somebody was faster: nothing is left that evening. Another one may suit you.")


def _day(day: date, offer: Offer, language: Language) -> tuple[str, str, bool]:
    near, written = evening_in_words(day, offer.tonight, language)
    return day.isoformat(), near if written else language.short_date(day), day == offer.day


def _table(currency: str, language: Language, table: Table) -> str:
    name = table.number
    if table.name.casefold() != table.number.casefold():
        name = f"{table.name} ({table.number})"
    text = isolate(name) or name
    if not table.minimum_spend:
        return text
    amount = f"{table.minimum_spend} {currency}"
    return language.gettext("%(table)s, from %(amount)s", table=text, amount=amount)


def _hours(choice: Choice, language: Language) -> str:
    return choice.slot.start if choice.slot else language.gettext("The whole evening").lower()
