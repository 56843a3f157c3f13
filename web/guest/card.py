"""The pages about a reservation, in the guest's language: the card, its times, errors."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from aiohttp import web

from appliance.core.errors import (
    ApiError,
    CustomerNameRequired,
    FormUsed,
    InvalidEmail,
    InvalidSlot,
    ManyFromAddress,
    RateLimited,
    TooManyBookings,
    Unavailable,
    ValidationError,
    VenueClosed,
    WrongState,
)
from appliance.core.i18n import Language, isolate
from appliance.core.i18n import mark as _
from appliance.core.text import fold
from appliance.http.request import ENVIRONMENT
from appliance.reservations.model import Reservation, start_date
from web.guest.links import OpenedLink
from web.guest.responses import language_of, page, takes_bookings

_YEAR_SHOWN_AFTER = timedelta(days=300)
_EVENINGS_START = 17 * 60  # minutes after midnight
# The icon, colour and text of the status chip, by reservation status.
_CHIPS = {
    "requested": ("triangle", "wait", _("Awaiting an answer")),
    "pending": ("triangle", "wait", _("Payment due")),
    "partial": ("triangle", "wait", _("Balance due")),
    "confirmed": ("check", "good", _("Confirmed")),
    "completed": ("dash", "past", _("Past")),
    "cancelled": ("dash", "past", _("Cancelled")),
    "declined": ("dash", "past", _("Declined")),
}
_REFUSALS: Mapping[type[ApiError], str] = {
    CustomerNameRequired: _("Please enter your name."),
    InvalidEmail: _("This email address is not valid: please check it."),
    ValidationError: _("One of the fields is too long: please shorten it."),
    WrongState: _("This is not possible any more: the reservation has changed meanwhile."),
    Unavailable: _("The system is busy. Nothing was lost: please try again in a moment."),
    InvalidSlot: _("This time is no longer offered. Please choose another one."),
    VenueClosed: _("The venue is closed that evening. Please choose another one."),
    FormUsed: _(
        "This page has already made a booking. Nothing more was booked: for another table, please "
        "send it again."
    ),
    RateLimited: _("Many people are booking right now. Please try again later, or call the venue."),
    TooManyBookings: _(
        "You already have several upcoming bookings, from this browser or with these contacts. For "
        "more, please call the venue."
    ),
    ManyFromAddress: _(
        "Many bookings have come from your network (Wi-Fi or mobile operator), perhaps by other "
        "guests. Please call the venue: it will take your booking."
    ),
}
_NOT_POSSIBLE = _("This was not possible. Nothing was changed: please call the venue.")


def reservation_page(
    request: web.Request,
    template: str,
    opened: OpenedLink,
    refusal: ApiError | None = None,
    **values: object,
) -> web.Response:
    """Return a page about a reservation, with its card and the links to its other pages.

    If a form on the page was refused, `refusal` is the error that the page shows.
    """
    prefix, language = request[ENVIRONMENT].prefix, language_of(request)
    shown: dict[str, object] = {
        "card": make_card(opened, language),
        "opened": opened,
        "mine": f"{prefix}/me",
        "book": f"{prefix}/book" if takes_bookings(request[ENVIRONMENT]) else None,
        "until": language.moment(opened.cancel_until, opened.zone),
        "done": request.query.get("done", ""),
        "fault": refusal_in_words(refusal, language) if refusal else None,
        **values,
    }
    return page(request, template, shown, refusal.status if refusal else 200)


def make_card(opened: OpenedLink, language: Language) -> dict[str, Any]:
    """Return the texts on a reservation's card. Texts that do not apply are None.

    `first_name` is enclosed in Unicode isolates, for use in left-to-right and right-to-left text.
    `chip` is a short status text with its icon and colour.
    """
    reservation, table = opened.reservation, opened.table
    starts = None if reservation.slot is None else reservation.starts
    starts_on, tonight = start_date(reservation), opened.tonight
    if opened.day - tonight != timedelta(1):  # 00:30 after tomorrow's evening is not "tomorrow"
        tonight += starts_on - opened.day
    evening, day = evening_in_words(starts_on, tonight, language, starts)
    return {
        "first_name": isolate(reservation.customer_given_name),
        "party": language.ngettext("%(count)s guest", "%(count)s guests", reservation.guests),
        "evening": evening,
        "date": day,
        "time": time_in_words(reservation, language),
        "table_name": None if fold(table.number) == fold(table.name) else table.name,
        "code": reservation.access_code if reservation.holds else None,
        "chip": _chip(reservation, opened.zone, language),
    }


def evening_in_words(
    day: date, tonight: date, language: Language, starts: int | None
) -> tuple[str, str | None]:
    """Return the evening's name and date, for example (`Ce soir`, `sam. 21 nov.`).

    Only yesterday's, today's and tomorrow's evenings have a name. For any other day, return only
    the date: (`Sam. 28 nov.`, None). The date is always included, because a printed card may be
    read on a later day. `starts` is the slot's start in minutes after midnight, or None for the
    whole evening. A slot that starts before 17:00 is called `Aujourd’hui` instead of `Ce soir`.
    """
    nears = {-1: _("Last night"), 0: _("Tonight"), 1: _("Tomorrow")}
    if starts is not None and starts < _EVENINGS_START:
        nears |= {-1: _("Yesterday"), 0: _("Today")}
    near = nears.get((day - tonight).days)
    written = language.short_date(day, year=day - tonight > _YEAR_SHOWN_AFTER)
    return (language.gettext(near), written) if near else (written[:1].upper() + written[1:], None)


def time_in_words(reservation: Reservation, language: Language) -> str:
    """Return the reservation's time, such as `de 20:30 à 22:30`, or "The whole evening"."""
    if reservation.slot is None:
        return language.gettext("The whole evening")
    hours, minutes = divmod(reservation.ends % (24 * 60), 60)
    return language.gettext(
        "%(start)s to %(end)s", start=reservation.slot, end=f"{hours:02d}:{minutes:02d}"
    )


def refusal_in_words(refusal: ApiError, language: Language, otherwise: str = _NOT_POSSIBLE) -> str:
    """Return the message for an error, or `otherwise` if there is no message for it."""
    kinds = (kind for kind in type(refusal).__mro__ if kind in _REFUSALS)
    sentence = next((_REFUSALS[kind] for kind in kinds), otherwise)
    if isinstance(refusal, ValidationError) and refusal.field == "phone":
        sentence = _("This phone number is not valid: enter 6 to 20 digits.")
    return language.gettext(sentence)


def _chip(reservation: Reservation, zone: ZoneInfo, language: Language) -> dict[str, str]:
    icon, tone, text = _CHIPS[reservation.status]
    text = language.gettext(text)
    if reservation.holds and reservation.checked_in_at is not None:
        instant = datetime.fromtimestamp(reservation.checked_in_at / 1000, UTC)
        text = language.gettext("Arrived at %(time)s", time=f"{instant.astimezone(zone):%H:%M}")
        icon, tone = "check", "good"
        if 0 < reservation.arrived < reservation.guests:
            text = language.ngettext(
                "%(count)s of %(guests)s has arrived",
                "%(count)s of %(guests)s have arrived",
                reservation.arrived,
                guests=reservation.guests,
            )
    return {"icon": icon, "tone": tone, "text": text}
