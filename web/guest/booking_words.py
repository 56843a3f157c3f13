"""The booking page in words: days, hours and tables, and why a wish was not granted."""

from datetime import date, timedelta
from functools import partial

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


def offer_in_words(offer: Offer, form: BookingForm | None, language: Language) -> dict[str, object]:
    """What the page says of the offer; what the guest had chosen stays chosen if it is free.

    `days` are (value for the form, a word such as `Ce soir`, whether it is the chosen one).
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
