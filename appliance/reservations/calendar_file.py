"""iCalendar files (RFC 5545) for reservations. Times are in UTC."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from appliance.reservations.model import Reservation
from appliance.venue.model import minute_of

_STATES = {"confirmed": "CONFIRMED", "completed": "CONFIRMED", "cancelled": "CANCELLED",
           "declined": "CANCELLED"}  # fmt: skip
_LINE_OCTETS = 75


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """A calendar event for a reservation.

    `hours` is (start, end) in minutes after midnight of `day`, or None for the whole day. All
    files for a reservation have the same UID, so a file with a higher SEQUENCE replaces the event
    in the guest's calendar.
    """

    reservation: Reservation
    day: date
    hours: tuple[int, int] | None
    zone: ZoneInfo
    summary: str
    location: str
    description: str
    url: str

    def to_ics(self) -> str:
        """Return the file's content, with CRLF line endings."""
        lines = [
            "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//venuebox//guest//EN", "CALSCALE:GREGORIAN",
            "METHOD:PUBLISH", "BEGIN:VEVENT",
            f"UID:{self.reservation.id}",
            f"DTSTAMP:{_utc(self.reservation.updated_at)}",
            f"SEQUENCE:{self.reservation.version}",
            *self._times(),
            f"STATUS:{_STATES.get(self.reservation.status, 'TENTATIVE')}",
            f"SUMMARY:{_text(self.summary)}",
            f"LOCATION:{_text(self.location)}",
            f"DESCRIPTION:{_text(self.description)}",
            f"URL:{self.url}",
            "END:VEVENT", "END:VCALENDAR",
        ]  # fmt: skip
        return "".join(_fold(line) + "\r\n" for line in lines)

    def _times(self) -> tuple[str, str]:
        if self.hours is None:
            following = self.day + timedelta(days=1)
            return f"DTSTART;VALUE=DATE:{self.day:%Y%m%d}", f"DTEND;VALUE=DATE:{following:%Y%m%d}"
        starts, ends = (_utc(minute_of(self.day, at, self.zone)) for at in self.hours)
        return f"DTSTART:{starts}", f"DTEND:{ends}"


def _utc(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y%m%dT%H%M%SZ}"


def _text(value: str) -> str:
    """Format an iCalendar TEXT value: escape special characters and remove control characters."""
    lines = re.sub(r"([\\;,])", r"\\\1", value).splitlines()
    return "\\n".join("".join(c for c in line if c.isprintable() or c == " ") for line in lines)


def _fold(line: str) -> str:
    """Split an iCalendar line into parts of at most 75 octets, but never within a character."""
    folded, room = "", _LINE_OCTETS
    for character in line:
        size = len(character.encode())
        if size > room:
            folded += "\r\n "
            room = _LINE_OCTETS - 1  # a continuation line starts with a space
        folded += character
        room -= size
    return folded
