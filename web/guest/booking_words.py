"""The booking page in words: days, hours and tables, and why a wish was not granted."""

from dataclasses import dataclass
from datetime import date

from appliance.errors import (
    GuestsOutOfRange,
    InvalidSlot,
    RateLimited,
    Refusal,
    TableNotBookable,
    TableNotFound,
    TableTaken,
    Unavailable,
    VenueClosed,
)
from appliance.house_errors import FormUsed, TooManyBookings
from appliance.i18n import Language, isolate
from appliance.model.evening import BOOKING_HORIZON_DAYS
from appliance.model.venue import Table
from web.guest.booking_form import BookingForm
from web.guest.card import evening_in_words
from web.guest.offer import Choice, Offer

_SHOWN_TABLES = 5


@dataclass(frozen=True, slots=True)
class DayWords:
    """A day to choose: `value` for the form, a word such as `Ce soir`, and the date."""

    value: str
    word: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class TableWords:
    """A table to choose."""

    id: str
    text: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ChoiceWords:
    """An hour to choose; `note` is how many tables are left, or why none."""

    when: str
    title: str
    hours: str
    note: str
    is_free: bool
    is_chosen: bool
    tables: list[TableWords]


@dataclass(frozen=True, slots=True)
class OfferWords:
    """Everything that the page says of an evening."""

    value: str
    evening: str
    first: str
    last: str
    guests: int
    most: int
    days: list[DayWords]
    choices: list[ChoiceWords]
    empty: str | None
    button: str
    terms: str | None


def offer_in_words(offer: Offer, form: BookingForm | None, language: Language) -> OfferWords:
    """The offer, with what the guest had chosen still chosen where that is possible."""
    near, written = evening_in_words(offer.day, offer.tonight, language)
    free = [choice for choice in offer.choices if choice.is_free]
    wanted = form.when if form else ""
    if wanted not in {choice.when for choice in free}:
        wanted = free[0].when if free and form is None else ""
    button, terms = _terms(offer, language)
    return OfferWords(
        value=offer.day.isoformat(),
        evening=(
            language.gettext("%(near)s, %(date)s", near=near, date=written) if written else near
        ),
        first=offer.tonight.isoformat(),
        last=date.fromordinal(offer.tonight.toordinal() + BOOKING_HORIZON_DAYS).isoformat(),
        guests=offer.guests,
        most=offer.most,
        days=[_day(day, offer, language) for day in offer.next_days],
        choices=[_choice(choice, offer, form, wanted, language) for choice in offer.choices],
        empty=_empty(offer, language),
        button=button,
        terms=terms,
    )


def trouble_in_words(
    refusal: Refusal, offer: Offer, form: BookingForm | None, language: Language
) -> str:
    """Why nothing was booked, and what is still free: "Autres tables libres : T2, T5."."""
    _ = language.gettext
    if isinstance(refusal, (TableTaken, TableNotBookable, TableNotFound, GuestsOutOfRange)):
        return _taken(offer.choice(form.when) if form else None, offer, language)
    sentences: dict[type[Refusal], str] = {
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


def _day(day: date, offer: Offer, language: Language) -> DayWords:
    near, written = evening_in_words(day, offer.tonight, language)
    word = near if written else language.short_date(day)
    return DayWords(day.isoformat(), word, is_chosen=day == offer.day)


def _choice(
    choice: Choice, offer: Offer, form: BookingForm | None, wanted: str, language: Language
) -> ChoiceWords:
    _ = language.gettext
    if choice.has_begun:
        note = _("Has begun")
    elif choice.tables:
        note = language.ngettext("%(count)s table free", "%(count)s tables free",
                                 len(choice.tables))  # fmt: skip
    else:
        note = _("Full")
    return ChoiceWords(
        when=choice.when,
        title=choice.slot.name if choice.slot else _("The whole evening"),
        hours=_span(choice),
        note=note,
        is_free=choice.is_free,
        is_chosen=choice.when == wanted,
        tables=[_table(table, offer, form, language) for table in choice.tables],
    )


def _table(table: Table, offer: Offer, form: BookingForm | None, language: Language) -> TableWords:
    name = table.number
    if table.name.casefold() != table.number.casefold():
        name = f"{table.name} ({table.number})"
    text = isolate(name) or name
    if table.minimum_spend:
        text = language.gettext(
            "%(table)s, from %(amount)s",
            table=text,
            amount=f"{table.minimum_spend} {offer.venue.currency}",
        )
    return TableWords(table.id, text, is_chosen=form is not None and form.table == table.id)


def _span(choice: Choice) -> str:
    return f"{choice.slot.start} – {choice.slot.end}" if choice.slot else ""


def _hours(choice: Choice, language: Language) -> str:
    return choice.slot.start if choice.slot else language.gettext("The whole evening").lower()


def _empty(offer: Offer, language: Language) -> str | None:
    _ = language.gettext
    if offer.is_closed:
        return _("The house is closed that evening. Please choose another one.")
    if not offer.is_free:
        return _("Nothing is free that evening for a party of that size. Another one may suit you.")
    return None


def _terms(offer: Offer, language: Language) -> tuple[str, str | None]:
    """What the button does, and what follows."""
    _ = language.gettext
    if offer.venue.reservation_mode == "prepaid":
        return _("Book"), _("Your table is kept for you until the venue has your payment.")
    if not offer.venue.auto_confirm:
        return _("Send the request"), _("The venue answers each request itself.")
    return _("Book"), None
