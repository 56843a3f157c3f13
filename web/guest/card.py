"""The guest's card in words: what the pages show of a reservation, in one language."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from appliance.i18n import Language, isolate
from appliance.model.reservation import Reservation
from web.guest.opened_link import OpenedLink

_YEAR_IS_SAID_AFTER = timedelta(days=300)


@dataclass(frozen=True, slots=True)
class Chip:
    """The status in two words, with a shape (`icon`) and a `tone` of its own."""

    icon: str
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class Card:
    """Every text of the card. None where there is nothing to say.

    `first_name` may stand in a sentence of either direction. `way` leads to a map.
    """

    venue: str
    address: str | None
    way: str | None
    customer: str | None
    first_name: str | None
    party: str
    evening: str
    date: str | None
    time: str
    table: str
    table_name: str | None
    code: str | None
    chip: Chip
    headline: str | None
    notice: str | None


def make_card(opened: OpenedLink, language: Language) -> Card:
    """The card of an opened link."""
    reservation, table = opened.reservation, opened.table
    evening, day = evening_in_words(opened.day, opened.tonight, language)
    headline, notice = _notice(reservation, language)
    return Card(
        venue=opened.venue.name,
        address=opened.venue.address,
        way=opened.venue.way,
        customer=reservation.customer_name,
        first_name=isolate(reservation.customer_given_name),
        party=language.ngettext("%(count)s guest", "%(count)s guests", reservation.guests),
        evening=evening,
        date=day,
        time=time_in_words(reservation, language),
        table=table.number,
        table_name=None if table.number.casefold() == table.name.casefold() else table.name,
        code=reservation.access_code if reservation.holds else None,
        chip=_chip(reservation, opened.zone, language),
        headline=headline,
        notice=notice,
    )


def evening_in_words(day: date, tonight: date, language: Language) -> tuple[str, str | None]:
    """`Ce soir` and `sam. 21 nov.`; from the day after tomorrow on, the date alone.

    The date always stands there too: a card that was printed does not know tomorrow.
    """
    _ = language.gettext
    words = {-1: _("Last night"), 0: _("Tonight"), 1: _("Tomorrow")}
    written = language.short_date(day, year=day - tonight > _YEAR_IS_SAID_AFTER)
    near = words.get((day - tonight).days)
    return (near, written) if near else (_capital(written), None)


def time_in_words(reservation: Reservation, language: Language) -> str:
    """`de 20:30 à 22:30`, or the whole evening."""
    if reservation.slot is None:
        return language.gettext("The whole evening")
    hours, minutes = divmod(reservation.ends % (24 * 60), 60)
    return language.gettext(
        "%(start)s to %(end)s", start=reservation.slot, end=f"{hours:02d}:{minutes:02d}"
    )


def moment_in_words(at: int, zone: ZoneInfo, language: Language) -> str:
    """`sam. 21 nov. à 17:30`, as venue clocks show that instant (ms)."""
    moment = datetime.fromtimestamp(at / 1000, UTC).astimezone(zone)
    return language.gettext(
        "%(date)s at %(time)s", date=language.short_date(moment.date()), time=f"{moment:%H:%M}"
    )


def _chip(reservation: Reservation, zone: ZoneInfo, language: Language) -> Chip:
    _ = language.gettext
    if reservation.holds and reservation.checked_in_at is not None:
        return Chip("check", "good", _arrival(reservation, zone, language))
    chips = {
        "requested": Chip("triangle", "wait", _("Awaiting the venue")),
        "pending": Chip("triangle", "wait", _("Payment due")),
        "partial": Chip("triangle", "wait", _("Balance due")),
        "confirmed": Chip("check", "good", _("Confirmed")),
        "completed": Chip("dash", "past", _("Past")),
        "cancelled": Chip("dash", "past", _("Cancelled")),
        "declined": Chip("dash", "past", _("Declined")),
    }
    return chips[reservation.status]


def _arrival(reservation: Reservation, zone: ZoneInfo, language: Language) -> str:
    if 0 < reservation.arrived < reservation.guests:
        return language.ngettext(
            "%(count)s of %(guests)s has arrived",
            "%(count)s of %(guests)s have arrived",
            reservation.arrived,
            guests=reservation.guests,
        )
    instant = datetime.fromtimestamp((reservation.checked_in_at or 0) / 1000, UTC)
    return language.gettext("Arrived at %(time)s", time=f"{instant.astimezone(zone):%H:%M}")


def _notice(reservation: Reservation, language: Language) -> tuple[str | None, str | None]:
    """A headline that takes the pass's place, and a sentence, where the state asks for them."""
    _ = language.gettext
    notices = {
        "requested": (
            None,
            _("Not confirmed yet: the venue will answer you soon. This code opens the door then."),
        ),
        "pending": (
            None,
            _("Not confirmed yet: it will be as soon as the venue has received your payment."),
        ),
        "partial": (
            None,
            _("Not confirmed yet: it will be as soon as the venue has received the balance."),
        ),
        "cancelled": (
            _("This reservation is cancelled"),
            _("The table has been freed. We would be glad to welcome you another evening."),
        ),
        "declined": (
            _("The venue could not accept this request"),
            _("We are sorry: there was no room that evening. Another one may suit you."),
        ),
    }
    return notices.get(reservation.status, (None, None))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
