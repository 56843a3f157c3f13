"""iCalendar files (RFC 5545) for reservations. Times are in UTC."""

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from appliance.core.i18n import Language
from appliance.reservations.model import Reservation
from appliance.venue.model import Venue, minute_of

_STATES = {"confirmed": "CONFIRMED", "completed": "CONFIRMED", "cancelled": "CANCELLED",
           "declined": "CANCELLED"}  # fmt: skip
_LINE_OCTETS = 75


def calendar_file(
    reservation: Reservation, venue: Venue, hours: tuple[int, int] | None, zone: ZoneInfo,
    language: Language, url: str, organizer: str = "",
) -> str:  # fmt: skip
    """Return an iCalendar file (with CRLF line endings) that contains a reservation as one event.

    `hours` is the result of `hours_of`; if it is None, the event lasts all day. `url` is the
    guest's link, and `organizer` the address that an email with the file comes from. A calendar
    reminds of the event two hours before. All files for a reservation have the same UID, so a file
    with a higher SEQUENCE replaces the event in the guest's calendar, or removes it (RFC 5546,
    section 3.2.5).
    """
    day, gettext, code = date.fromisoformat(reservation.date), language.gettext, ""
    if hours is None:
        starts, ends = f";VALUE=DATE:{day:%Y%m%d}", f";VALUE=DATE:{day + timedelta(days=1):%Y%m%d}"
    else:
        starts, ends = (f":{_utc(minute_of(day, at, zone))}" for at in hours)
    if reservation.holds:
        code = gettext("Access code: %(code)s", code=reservation.access_code)
    party = language.ngettext("%(count)s guest", "%(count)s guests", reservation.guests)
    location = ", ".join(filter(None, (venue.name, venue.address)))
    description = "\n".join(filter(None, (reservation.table_name, party, code, url)))
    summary = _text(gettext("Table at %(venue)s", venue=venue.name))
    alarm = (
        "BEGIN:VALARM",
        "ACTION:DISPLAY",
        "TRIGGER:-PT2H",
        f"DESCRIPTION:{summary}",
        "END:VALARM",
    )
    lines = [
        "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//venuebox//guest//EN", "CALSCALE:GREGORIAN",
        f"METHOD:{calendar_method(reservation)}", "BEGIN:VEVENT",
        f"UID:{reservation.id}",
        f"DTSTAMP:{_utc(reservation.updated_at)}",
        f"SEQUENCE:{reservation.version}",
        f"DTSTART{starts}",
        f"DTEND{ends}",
        f"STATUS:{_STATES.get(reservation.status, 'TENTATIVE')}",
        f"SUMMARY:{summary}",
        f"LOCATION:{_text(location)}",
        f"DESCRIPTION:{_text(description)}",
        f"URL:{url}",
        *([f"ORGANIZER;CN={_quoted(venue.name)}:mailto:{organizer}"] if organizer else ()),
        *(alarm if hours is not None and reservation.holds else ()),
        "END:VEVENT", "END:VCALENDAR",
    ]  # fmt: skip
    return "".join(_fold(line) + "\r\n" for line in lines)


def calendar_method(reservation: Reservation) -> str:
    """Return the method of the reservation's file, which an email also names in its part."""
    return "CANCEL" if _STATES.get(reservation.status) == "CANCELLED" else "PUBLISH"


def _utc(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y%m%dT%H%M%SZ}"


def _text(value: str) -> str:
    """Format an iCalendar TEXT value: escape special characters and remove control characters."""
    lines = re.sub(r"([\\;,])", r"\\\1", re.sub(r"[^\S\r\n]", " ", value)).splitlines()
    return "\\n".join("".join(c for c in line if c.isprintable()) for line in lines)


def _quoted(value: str) -> str:
    """Format the value of an iCalendar parameter, which cannot contain a quotation mark."""
    return f'"{"".join(c for c in value if c.isprintable() and c != chr(34))}"'


def _fold(line: str) -> str:
    """Fold an iCalendar line into parts of at most 75 octets without splitting a character."""
    folded, room = "", _LINE_OCTETS
    for character in line:
        size = len(character.encode())
        if size > room:
            folded += "\r\n "
            room = _LINE_OCTETS - 1  # a continuation line starts with a space
        folded += character
        room -= size
    return folded
