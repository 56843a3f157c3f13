"""The booking form: what keeps programs out of it, what was typed, and what is wrong with it."""

from dataclasses import dataclass
from datetime import date

from aiohttp import web

from appliance.actions.book import ANY_TABLE
from appliance.environment import Environment
from appliance.i18n import Language
from appliance.model.booking import (
    NAME_MAX,
    NOTES_MAX,
    Booking,
    is_email,
    is_phone,
    is_visible,
    parse_uuid,
)
from appliance.model.evening import is_slot, parse_date
from appliance.tokens import made_at
from web.guest.offer import WHOLE_EVENING
from web.portal.forms import read_form

FIELDS = ("when", "name", "email", "phone", "notes")  # those that may be wrong
TRAP = "website"  # a field that no guest sees: who fills it in is a program
_FASTEST = 2_000  # ms in which nobody fills in a form
_OLDEST = 6 * 3_600_000
_TYPED_MAX = 2000


@dataclass(frozen=True, slots=True)
class BookingForm:
    """A form as it was sent; `table` is an id or empty, `form_id` None for one of no ours."""

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
        """Whether its token is none of ours, or too old to tell anything."""
        return self.age is None or not 0 <= self.age <= _OLDEST

    def to_booking(self, day: date, language: Language) -> Booking:
        """The booking that it asks for, once it has no errors."""
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
    """The form that was sent, whatever is wrong with it; ValidationError when it is no form."""
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
    """How many guests a form or an address says; `otherwise` where it says no such thing."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else otherwise


def new_token(environment: Environment) -> str:
    """The token of a form that is shown now."""
    database = environment.database
    return environment.keyring.form_token(database.tokens.new_id(database.clock.now()))


def find_errors(form: BookingForm, language: Language) -> dict[str, str]:
    """What is wrong with what was typed, by field, in words."""
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
    """Why it may not be a guest who sent it, in words that a guest can do something with."""
    _ = language.gettext
    if form.is_trapped or (form.age is not None and 0 <= form.age < _FASTEST):
        return _("That was quick. Please look at it once more, and send it again.")
    if form.is_stale:
        return _("This page was open for a long time. Nothing is lost: please send it again.")
    return None
